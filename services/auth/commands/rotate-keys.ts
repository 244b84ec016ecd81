import { parseArgs } from 'node:util';
import { readKeySecret } from '../config.ts';
import { replaceSigningKeys, rotateSigningKey } from '../keys/key-rotation.ts';
import { CommandError, type Command } from './command.ts';

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
  const made = await withAccounts((accounts) => rotateSigningKey(accounts, secret));
  if (!made)
    throw new CommandError('There is no signing key yet. The auth service creates one when it starts.');
  if ('waiting' in made) {
    const { waiting, signsFrom } = made;
    throw new CommandError(`Key ${waiting} signs from ${utc(signsFrom)}; rotate again after that.`);
  }
  const { kid, replaced, signsFrom, publishedUntil } = made;
  return [
    `Created signing key ${kid}. Every auth process publishes it within a second; no restart is needed.`,
    `It signs from ${utc(signsFrom)} on.`,
    `Key ${replaced} is deleted at ${utc(publishedUntil)}, when its last token has expired.`,
  ].join('\n');
};
