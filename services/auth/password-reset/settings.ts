import { z } from 'zod';
import { areAllSet, parsable } from '@content-platform/chassis';
import { plainUrl } from '../identity/settings.ts';

const smtpForm =
  'smtps:// with port 465, or smtp:// with another port, with user:password@ where needed; smtp://…?tls=never switches STARTTLS off';
const mailbox =
  /^(?:[^\p{Cc}<>()[\]",:;@\\]* )?<[^\s\p{Cc}<>,;@]+@[^\s\p{Cc}<>,;@]+>$|^[^\s\p{Cc}<>,;@]+@[^\s\p{Cc}<>,;@]+$/u;
const mailboxForm = 'an email address, also as Name <address>';
const resetUrlForm = 'an https URL (http on loopback) without query and fragment';

/** Converts SMTP_URL to options of nodemailer. Throws for any other form. */
function smtpOptions(value: string) {
  const { protocol, hostname, port: given, username, password, pathname, search, hash } = new URL(value);
  const secure = protocol === 'smtps:';
  const neverTls = search === '?tls=never';
  const isSupported = secure ? search === '' : protocol === 'smtp:' && (search === '' || neverTls);
  if (!isSupported || hostname === '' || !/^\/?$/.test(pathname) || hash) throw new Error(smtpForm);
  const port = Number(given || (secure ? 465 : 587));
  // Alertmanager uses the same URL, and begins a connection with TLS only at port 465.
  if (secure !== (port === 465)) throw new Error(smtpForm);
  const auth = { user: decodeURIComponent(username), pass: decodeURIComponent(password) };
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port,
    secure,
    // Without it, an attacker in the network could remove STARTTLS from the server's reply and read the mail.
    requireTLS: !secure && !neverTls,
    ignoreTLS: neverTls,
    ...(username && { auth }),
  };
}

/** The settings of mails. All are required to enable them. */
export const mailConfig = {
  SMTP_URL: parsable(smtpOptions, smtpForm)
    .optional()
    .describe(
      'URL of the mail server: `smtp://user:password@host:587` (STARTTLS is required, except with `?tls=never`) or `smtps://…:465`; unset: users cannot reset a forgotten password',
    ),
  MAIL_FROM: z
    .string(mailboxForm)
    .regex(mailbox, mailboxForm)
    .optional()
    .describe('Sender of mails: `address` or `Name <address>`; required with SMTP_URL'),
  PASSWORD_RESET_URL: plainUrl(resetUrlForm)
    .optional()
    .describe(
      'URL of the page of your app on which users choose a new password, https; a mail links to it with `#token=…`; required with SMTP_URL',
    ),
};

export type MailSettings = NonNullable<ReturnType<typeof mailSettings>>;

/** Returns undefined if no mails are sent. Throws ConfigError if the settings are incomplete. */
export function mailSettings(config: z.output<z.ZodObject<typeof mailConfig>>) {
  if (!areAllSet(config, ['SMTP_URL', 'MAIL_FROM', 'PASSWORD_RESET_URL'])) return undefined;
  const { SMTP_URL, MAIL_FROM: from, PASSWORD_RESET_URL: resetUrl } = config;
  return { smtp: smtpOptions(SMTP_URL), from, resetUrl };
}
