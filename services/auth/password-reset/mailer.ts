import { domainToASCII } from 'node:url';
import { createTransport } from 'nodemailer';
import type { MailSettings } from './settings.ts';

type Mail = Record<'to' | 'subject' | 'text', string>;

/** Maximum duration of sending a mail, in ms. Shorter than the pause between attempts. */
const mailMs = 25_000;

export type Mailer = ReturnType<typeof createMailer>;

/** Opens a connection for each mail, and waits for the server's greeting for at most `waitMs`. */
export function createMailer({ smtp, from }: Pick<MailSettings, 'smtp' | 'from'>, waitMs = 10_000) {
  const transport = createTransport({
    ...smtp,
    // The name in EHLO. By default a container sends [127.0.0.1], which Google's relay refuses with 421.
    name: domainToASCII(from.replace(/^.*@|>$/g, '')),
    dnsTimeout: waitMs,
    connectionTimeout: waitMs,
    greetingTimeout: waitMs * 0.9,
    // A server may check a mail before it confirms it. After an earlier timeout the user would get the mail again.
    socketTimeout: mailMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    /** Sends a mail. Throws the errors of nodemailer, also if `signal` is aborted, and after 25 s. */
    async send({ to, subject, text }: Mail, signal: AbortSignal): Promise<void> {
      await transport.sendMail({
        from,
        // As an object, because a text is parsed and may contain several addresses.
        to: { name: '', address: to },
        subject,
        text,
        // RFC 3834: automatic replies are not wanted.
        headers: { 'Auto-Submitted': 'auto-generated' },
        signal: AbortSignal.any([signal, AbortSignal.timeout(mailMs)]),
      });
    },
  };
}

/** Returns whether the server refused the sender, the recipient or the mail permanently (RFC 5321 §4.2.1). */
export function isRefusal(error: unknown): boolean {
  const { code, responseCode } = error as { code?: unknown; responseCode?: unknown };
  return (code === 'EENVELOPE' || code === 'EMESSAGE') && Number(responseCode) >= 500;
}
