import { type Logger, repeat } from '@content-platform/chassis';
import { decrypt } from '../keys/sealing.ts';
import type { Mails } from '../metrics.ts';
import type { AuthDatabase } from '../stores.ts';
import { isRefusal, type Mailer } from './mailer.ts';
import { type DueMail, tokenMinutes } from './reset-store.ts';

/** The associated data of an encrypted token. */
export const tokenContext = 'password reset';

interface SenderDeps {
  database: AuthDatabase;
  mailer: Mailer;
  /** PASSWORD_RESET_URL */
  resetUrl: string;
  /** Key that encrypts tokens until their mails are sent. */
  resetKey: Buffer;
  mails: Mails;
  logger: Logger;
}

/** Lines have at most 72 characters, so that only a long link makes the mail quoted-printable. */
function textOf({ hasNoPassword }: DueMail, link: string): string {
  const reason = `This email was sent because your address was entered under
"Forgot password".`;
  if (hasNoPassword)
    return `${reason}

Your account has no password. You log in with the account of your
organisation: choose this login in the app.
`;
  return `${reason}

Open this link to choose a new password. It works once, until ${tokenMinutes} minutes
after your request:

${link}

If you do not want a new password, you need not do anything. Your
password is unchanged.
`;
}

/** Sends mails until the returned function is called. A mail may arrive twice, if a process crashes while it sends. */
export function startSendingMails(
  { database, mailer, resetUrl, resetKey, mails, logger }: SenderDeps,
  { everyMs = 1_000, pauseSeconds = 30 } = {},
): () => Promise<void> {
  const claim = () =>
    database.transaction(async ({ passwordResets, audit }) => {
      const due = await passwordResets.claim(pauseSeconds);
      if (due?.attempt === 1)
        await audit.add({ event: 'password_reset_requested', userId: due.userId, address: due.address });
      return due;
    });

  /** Throws if `signal` is aborted; the mail is then sent by the next attempt. */
  async function send(due: DueMail, signal: AbortSignal): Promise<void> {
    let outcome: 'sent' | 'failed' | 'abandoned' = 'sent';
    try {
      const token = decrypt(due.encryptedToken, resetKey, tokenContext).toString();
      const text = textOf(due, `${resetUrl}#token=${token}`);
      await mailer.send({ to: due.email, subject: 'Your new password', text }, signal);
    } catch (error) {
      signal.throwIfAborted();
      outcome = isRefusal(error) || due.isLast ? 'abandoned' : 'failed';
      // The mail server's reply may quote the recipient, also in another case or encoding. The log must not have the email.
      const reason = (error as Error).message.replace(/[^\s<>]*@[^\s<>]+/g, '[email]');
      const next = outcome === 'abandoned' ? 'no further attempt follows' : 'it will be retried';
      logger.warn({ user_id: due.userId, attempt: due.attempt, reason }, `a mail was not sent; ${next}`);
    }
    if (outcome !== 'failed') await database.passwordResets.finish(due.id);
    mails.inc({ outcome });
  }

  async function sendAll(signal: AbortSignal): Promise<void> {
    for (let due; !signal.aborted && (due = await claim());) await send(due, signal);
  }
  return repeat(sendAll, { everyMs, logger, failure: 'mails cannot be sent; retrying every second' });
}
