import { parseArgs } from 'node:util';
import { byCommand, removeMfa } from '../administration.ts';
import { parseArgument, email, CommandError, type Command } from './command.ts';

/** Runs `reset-mfa EMAIL`. */
export const resetMfa: Command = async (args, { withAccounts }) => {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  if (positionals.length > 1) throw new CommandError(`Give exactly one EMAIL.`);
  const address = parseArgument('EMAIL', email, positionals[0]);
  const removed = await withAccounts(async (accounts) => {
    const user = await accounts.users.findByEmail(address);
    if (!user) throw new CommandError(`User ${address} was not found.`);
    return accounts.transaction((stores) => removeMfa(stores, user.id, byCommand));
  });
  if (!removed) throw new CommandError(`User ${address} has no second factor.`);
  return `Removed the second factor of ${address}: the next login needs the password only.`;
};
