import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { machineScopes, type AuditEvent } from '@content-platform/contract';
import { ensureClient, type Accounts } from '../accounts.ts';
import { byCommand } from '../administration.ts';
import { clientName, type ClientStore } from '../client-store.ts';
import { randomToken } from '../sessions/opaque-token.ts';
import { parseArgument, parseOnly, type Command } from './command.ts';

const nameMessage = 'must be 1 to 64 lower-case letters, digits and dashes, a letter first';
const nameForm = z.string(nameMessage).regex(clientName, nameMessage);
const scopeMessage = `must be one of ${machineScopes.join(', ')}`;
const scopesForm = z.object({ scope: z.array(z.enum(machineScopes, scopeMessage), scopeMessage) });
const options = { scope: { type: 'string', multiple: true } } as const;

/** Runs `create-client NAME --scope S…`; generates the secret. */
export const createClient: Command = async (args, { withAccounts }) => {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
  const name = parseOnly('NAME', nameForm, positionals);
  const { scope: scopes } = parseArgument('--', scopesForm, values);
  const secret = randomToken();
  const isNew = await withAccounts((accounts) =>
    ensureClient(accounts, { name, secret, scopes: [...new Set(scopes)] }),
  );
  if (!isNew) throw new Error(`Client ${name} exists already.`);
  return `Created client ${name} (${scopes.join(', ')}). Its secret, shown only now:\n${secret}`;
};

function parseName(args: string[]): string {
  return parseOnly('NAME', nameForm, parseArgs({ args, allowPositionals: true }).positionals);
}

/** Runs `change` and revokes the client's tokens. Throws if the client does not exist or is disabled. */
async function changeClient(
  { transaction }: Accounts,
  client: string,
  event: AuditEvent,
  change: (clients: ClientStore) => Promise<boolean>,
): Promise<void> {
  await transaction(async ({ clients, revocations, audit }) => {
    const found = await change(clients);
    if (!found) throw new Error(`Client ${client} was not found, or is disabled.`);
    await audit.add({ ...byCommand, event, details: { client } });
    await revocations.add({ client });
  });
}

/** Wait before the new secret is shown, in ms: a revocation covers whole seconds, and must not cover new tokens. */
const revocationMs = 2_000;

/** Runs `rotate-client NAME`; replaces the client's secret and revokes its tokens. */
export const rotateClient: Command = async (args, { withAccounts }) => {
  const client = parseName(args);
  const secret = randomToken();
  await withAccounts(async (accounts) => {
    const hash = await accounts.passwords.hash(secret);
    await changeClient(accounts, client, 'client_secret_rotated', (clients) =>
      clients.replaceSecretHash(client, hash),
    );
  });
  await sleep(revocationMs);
  return `The new secret of client ${client}, shown only now; the old secret and its tokens were revoked:\n${secret}`;
};

/** Runs `disable-client NAME`; permanently revokes the client's secret and tokens. */
export const disableClient: Command = async (args, { withAccounts }) => {
  const client = parseName(args);
  await withAccounts((accounts) =>
    changeClient(accounts, client, 'client_disabled', (clients) => clients.disable(client)),
  );
  return `Disabled client ${client}: its secret and its tokens were revoked.`;
};
