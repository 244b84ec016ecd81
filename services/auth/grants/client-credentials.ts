import { type Database, HttpError, type Logger } from '@content-platform/chassis';
import type { Scope } from '@content-platform/contract';
import type { AccessTokens } from '../access-tokens.ts';
import { audit } from '../audit.ts';
import { invalidClient, readClientCredentials } from '../client-credentials.ts';
import { createClientStore, type Client, type ClientStore } from '../client-store.ts';
import type { Passwords } from '../passwords/passwords.ts';
import type { Grant } from './grant.ts';

export interface ClientCredentialsDeps {
  clients: ClientStore;
  passwords: Passwords;
  tokens: AccessTokens;
  database: Database;
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
  database,
  logger,
}: ClientCredentialsDeps): Grant {
  /** Undefined when the client was disabled or given another secret since it was checked. */
  function issue(client: Client, scopes: readonly Scope[], address: string): Promise<string | undefined> {
    return database.transaction(async (query) => {
      // Those revoke what was issued before them; so nothing may be issued after them for the old secret.
      if (!(await createClientStore(query).hold(client))) return undefined;
      await audit(query, { event: 'client_token', actor: `client:${client.name}`, address });
      return tokens.forClient(client.name, scopes);
    });
  }

  return async ({ body, header, address }) => {
    const { name, secret } = readClientCredentials(header('authorization'), body);
    const { client, valid } = await passwords.admit(async () => {
      const client = await clients.find(name);
      return { client, valid: await passwords.verify(client?.secretHash, secret) };
    });
    const usable = client && valid && !client.disabled;
    const scopes = usable ? grantedScopes(client, body.scope) : [];
    const accessToken = usable ? await issue(client, scopes, address) : undefined;
    if (accessToken === undefined) {
      const reason = !client ? 'unknown client' : !valid ? 'wrong secret' : 'disabled or rotated';
      logger.info({ client: client?.name, reason }, 'a client was refused');
      const details = { reason, ...(client && { client: client.name }) };
      await audit(database.query, { event: 'client_refused', address, details });
      throw invalidClient('The client is unknown or its secret is wrong.');
    }
    return { accessToken, scopes };
  };
}
