import { parseArgs } from 'node:util';
import type { Command } from './command.ts';

/** Runs `list-unverified-identities`. */
export const listUnverifiedIdentities: Command = async (args, { withAccounts }) => {
  parseArgs({ args, options: {} });
  const found = await withAccounts(({ identities }) => identities.listUnverified());
  if (found.length === 0) return 'Every linked identity has a verified email address.';
  const lines = found.map(({ id, userId, userEmail, issuer, email, emailVerified }) => {
    const state =
      emailVerified === false ? `email ${email ?? 'missing'} not verified` : 'no login since the upgrade';
    return `user ${userId} ${userEmail}: identity ${id} at ${issuer}, ${state}`;
  });
  return lines.join('\n');
};
