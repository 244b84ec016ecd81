import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { command } from '../administration.ts';
import { clientNamed } from './arguments.ts';
import { CommandError, type Command } from './command.ts';

/**
 * A revocation counts in whole seconds and may take in the one that comes: a token issued right now with the new secret
 * would be refused with the old ones. Whoever gets the secret later than this has tokens that are good. Ms.
 */
const revocationMs = 2_000;

/** rotate-client NAME; the client's old secret and its tokens are of no use any more. */
export const rotateClient: Command = async (args, { open }) => {
  const client = clientNamed(args);
  const secret = randomBytes(32).toString('base64url');
  const accounts = await open();
  try {
    const secretHash = await accounts.passwords.hash(secret);
    await accounts.transaction(async ({ clients, revocations, audit }) => {
      const found = await clients.replaceSecretHash(client, secretHash);
      if (!found) throw new CommandError(`There is no client named ${client} that is not disabled.`);
      await audit.add({ ...command, event: 'client_secret_rotated', details: { client } });
      await revocations.add({ client });
    });
    await sleep(revocationMs);
    return `The new secret of client ${client}, shown only now; the old one and its tokens are of no use any more:\n${secret}`;
  } finally {
    await accounts.close();
  }
};
