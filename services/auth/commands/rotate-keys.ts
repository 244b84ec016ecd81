import { parseArgs } from 'node:util';
import { readKeySecret } from '../config.ts';
import { rotateSigningKey, signingKeyTimes } from '../keys/key-rotation.ts';
import { CommandError, type Command } from './command.ts';

/** Formats a time as `2026-01-31 12:00:00 UTC`. */
const utc = (time: Date) => `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;

/** Runs `rotate-keys`. */
export const rotateKeys: Command = async (args, { withAccounts }) => {
  parseArgs({ args, options: {} });
  const secret = readKeySecret();
  const made = await withAccounts((accounts) => rotateSigningKey(accounts, secret));
  if (!made) throw new CommandError('There is no signing key yet: the service makes one when it starts.');
  if ('waiting' in made) {
    const { waiting, signsFrom } = made;
    throw new CommandError(`Key ${waiting} signs from ${utc(signsFrom)}; rotate again after that.`);
  }
  const { kid, replaced, signsFrom, publishedUntil } = made;
  return [
    `Made signing key ${kid}. Every auth process publishes it within ${signingKeyTimes.reload} s; none needs a restart.`,
    `From ${utc(signsFrom)} on it signs.`,
    `From ${utc(publishedUntil)} on no token of key ${replaced} is left: it is deleted.`,
  ].join('\n');
};
