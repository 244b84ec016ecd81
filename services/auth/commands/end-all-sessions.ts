import { parseArgs } from 'node:util';
import { byCommand } from '../administration.ts';
import { readKeySecret } from '../config.ts';
import { replaceSigningKeys } from '../keys/key-rotation.ts';
import type { Command } from './command.ts';

/**
 * Runs `end-all-sessions`. Ends the sessions first, so that no refresh token gets an access token of the new key.
 * Replacing the keys revokes all access tokens without a revocation for each session.
 */
export const endAllSessions: Command = async (args, { withAccounts }) => {
  parseArgs({ args, options: {} });
  const secret = readKeySecret();
  const ended = await withAccounts(async (accounts) => {
    const count = await accounts.transaction(async ({ sessions, audit }) => {
      const sessionCount = await sessions.endAllUsers();
      const details = { session: 'all', sessions: sessionCount };
      await audit.add({ ...byCommand, event: 'session_revoked', details });
      return sessionCount;
    });
    await replaceSigningKeys(accounts, secret);
    return count;
  });
  return `Ended ${ended} sessions and replaced the signing keys. Within a second all access tokens are refused, also those of machine clients, which get new ones with their secrets.`;
};
