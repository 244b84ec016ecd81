import { type Database, HttpError, type Logger } from '@content-platform/chassis';
import type { Scope } from '@content-platform/contract';
import type { AccessTokens } from '../access-tokens.ts';
import { audit } from '../audit.ts';
import { invalidClient, readClientCredentials } from '../client-credentials.ts';
import type { Client, ClientStore } from '../client-store.ts';
import type { Passwords } from '../passwords.ts';
import type { Grant } from './grant.ts';

export interface ClientCredentialsDeps {
  clients: ClientStore;
  passwords: Passwords;
  tokens: AccessTokens;
  query: Database['query'];
  logger: Logger;
}

/** Without a wish, or an empty one (RFC 6749 §3.1), all that the client has. */
function grantedScopes(client: Client, wished: string | undefined): Scope[] {
  if (!wished) return client.scopes;
  const wishes = new Set(wished.split(' '));
  const granted = client.scopes.filter((scope) => wishes.has(scope));
  if (granted.length === wishes.size) return granted;
  throw new HttpError(400, 'invalid_scope', `The client has: ${client.scopes.join(' ') || 'no scopes'}.`);
}

/** RFC 6749 §4.4. */
export function clientCredentials({
  clients,
  passwords,
  tokens,
  query,
  logger,
}: ClientCredentialsDeps): Grant {
  return async ({ body, header, address }) => {
    const { name, secret } = readClientCredentials(header('authorization'), body);
    const { client, valid } = await passwords.admit(async () => {
      const client = await clients.find(name);
      return { client, valid: await passwords.verify(client?.secretHash, secret) };
    });
    if (!client || !valid || client.disabled) {
      logger.info({ client: client?.name }, 'a client was refused');
      await audit(query, { event: 'client_refused', actor: client && `client:${client.name}`, address });
      throw invalidClient('The client is unknown or its secret is wrong.');
    }
    const scopes = grantedScopes(client, body.scope);
    await audit(query, { event: 'client_token', actor: `client:${client.name}`, address });
    return { accessToken: tokens.forClient(client.name, scopes), scopes };
  };
}
