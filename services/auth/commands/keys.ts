import { parseArgs } from 'node:util';
import { byCommand } from '../administration.ts';
import { readKeySecret, readNewKeySecret } from '../config.ts';
import {
  replaceSigningKeys,
  rotateKeySecret as rotateSecret,
  rotateSigningKey,
} from '../keys/key-rotation.ts';
import type { Command } from './command.ts';

/** Formats a time as `2026-01-31 12:00:00 UTC`. */
const utc = (time: Date) => `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;

/** Runs `rotate-keys [--now]`. */
export const rotateKeys: Command = async (args, { withAccounts }) => {
  const { now } = parseArgs({ args, options: { now: { type: 'boolean' } } }).values;
  const secret = readKeySecret();
  if (now) {
    const kid = await withAccounts((accounts) => replaceSigningKeys(accounts, secret));
    return [
      `Created signing key ${kid}, which signs immediately, and deleted all other keys.`,
      'Within a second every service refuses the access tokens of the deleted keys. Clients get new ones with their refresh tokens.',
    ].join('\n');
  }
  const rotation = await withAccounts((accounts) => rotateSigningKey(accounts, secret));
  if (!rotation) throw new Error('There is no signing key yet. The auth service creates one when it starts.');
  if ('waiting' in rotation) {
    const { waiting, signsFrom } = rotation;
    throw new Error(`Key ${waiting} signs from ${utc(signsFrom)}; rotate again after that.`);
  }
  const { kid, replaced, signsFrom, publishedUntil } = rotation;
  return [
    `Created signing key ${kid}. Every auth process publishes it within a second; no restart is needed.`,
    `It signs from ${utc(signsFrom)} on.`,
    `Key ${replaced} is deleted at ${utc(publishedUntil)}, when its last token has expired.`,
  ].join('\n');
};

export const rotateKeySecret: Command = async (args, { withAccounts }) => {
  parseArgs({ args });
  const [current, next] = [readKeySecret(), readNewKeySecret()];
  if (current === next) throw new Error('AUTH_KEY_SECRET_NEW is the same as AUTH_KEY_SECRET.');
  const sealed = await withAccounts((accounts) => rotateSecret(accounts, current, next));
  const said =
    sealed === 'done'
      ? 'All keys and secrets are encrypted with AUTH_KEY_SECRET_NEW already.'
      : `Encrypted ${sealed} keys and secrets with AUTH_KEY_SECRET_NEW.`;
  return `${said}
Set AUTH_KEY_SECRET to the value of AUTH_KEY_SECRET_NEW wherever the auth service is configured, and restart its
processes. Running processes keep signing, but cannot restart with the old value.`;
};

/** Runs `end-all-sessions`. Ends the sessions first, so that no refresh token gets an access token of the new key. */
export const endAllSessions: Command = async (args, { withAccounts }) => {
  parseArgs({ args });
  const secret = readKeySecret();
  const ended = await withAccounts(async (accounts) => {
    // Not in a transaction, which would lock all sessions until its end: refreshes would wait.
    const count = await accounts.sessions.endAllUsers();
    const details = { session: 'all', sessions: count };
    await accounts.audit.add({ ...byCommand, event: 'session_revoked', details });
    await replaceSigningKeys(accounts, secret);
    return count;
  });
  return `Ended ${ended} sessions and replaced the signing keys. Within a second all access tokens are refused, also those of machine clients, which get new ones with their secrets.`;
};
