import { parseArgs } from 'node:util';
import { z } from 'zod';
import { machineScopes as known } from '@content-platform/contract';
import { ensureClient } from '../accounts.ts';
import { randomToken } from '../sessions/opaque-token.ts';
import { parseArgument, clientNameFrom, CommandError, type Command } from './command.ts';

const options = { scope: { type: 'string', multiple: true } } as const;
const scopeMessage = `must be of ${known.join(', ')}`;
const wanted = z.object({ scope: z.array(z.enum(known, scopeMessage), scopeMessage) });

/** Runs `create-client NAME --scope S…`; generates the secret. */
export const createClient: Command = async (args, { withAccounts }) => {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
  const name = clientNameFrom(positionals);
  const { scope: scopes } = parseArgument('--', wanted, values);
  const secret = randomToken();
  const isNew = await withAccounts((accounts) =>
    ensureClient(accounts, { name, secret, scopes: [...new Set(scopes)] }),
  );
  if (!isNew) throw new CommandError(`Client ${name} exists already.`);
  return `Created client ${name} (${scopes.join(', ')}). Its secret, shown only now:\n${secret}`;
};
