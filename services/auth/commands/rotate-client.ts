import { setTimeout as sleep } from 'node:timers/promises';
import { randomToken } from '../sessions/opaque-token.ts';
import { onlyClientName } from './arguments.ts';
import { changeClient } from './change-client.ts';
import type { Command } from './command.ts';

/**
 * A revocation counts in whole seconds and may take in the one that comes: a token issued right now with the new secret
 * would be refused with the old ones. Whoever gets the secret later than this has tokens that are good. Ms.
 */
const revocationMs = 2_000;

/** rotate-client NAME; the client's old secret and its tokens are of no use any more. */
export const rotateClient: Command = async (args, { withAccounts }) => {
  const client = onlyClientName(args);
  const secret = randomToken();
  await withAccounts(async (accounts) => {
    const hash = await accounts.passwords.hash(secret);
    await changeClient(accounts, client, 'client_secret_rotated', (clients) =>
      clients.replaceSecretHash(client, hash),
    );
  });
  await sleep(revocationMs);
  return `The new secret of client ${client}, shown only now; the old one and its tokens are of no use any more:\n${secret}`;
};
