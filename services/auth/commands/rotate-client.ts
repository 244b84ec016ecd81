import { setTimeout as sleep } from 'node:timers/promises';
import { randomToken } from '../sessions/opaque-token.ts';
import { parseClientName, type Command } from './command.ts';
import { changeClient } from './change-client.ts';

/**
 * Wait before the new secret is printed, in ms. A revocation has a resolution of one second and is rounded up. A token
 * that the new secret gets immediately would be revoked with the old tokens.
 */
const revocationMs = 2_000;

/** Runs `rotate-client NAME`; replaces the client's secret and revokes its tokens. */
export const rotateClient: Command = async (args, { withAccounts }) => {
  const client = parseClientName(args);
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
