import { type Database, HttpError, type Logger } from '@content-platform/chassis';
import type { Scope } from '@content-platform/contract';
import type { AccessTokens } from '../access-tokens.ts';
import { audit } from '../audit.ts';
import { invalidClient, readClientCredentials } from '../client-credentials.ts';
import { clientName, createClientStore, type Client, type ClientStore } from '../client-store.ts';
import { isNetworkOfClient, noteClientUse } from '../client-uses.ts';
import type { Guesses } from '../guessing/guesses.ts';
import type { Passwords } from '../passwords/passwords.ts';
import type { Grant } from './grant.ts';

export interface ClientCredentialsDeps {
  clients: ClientStore;
  passwords: Passwords;
  guesses: Guesses;
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

/** Why there is no token, for those who run the platform. */
function reasonOf(client: Client | undefined, valid: boolean): string {
  if (!client) return 'unknown client';
  return valid ? 'disabled or rotated' : 'wrong secret';
}

/** RFC 6749 §4.4. Guesses at secrets are limited as those at passwords are, which §2.3.1 asks for. */
export function clientCredentials(deps: ClientCredentialsDeps): Grant {
  const { clients, passwords, guesses, tokens, database, logger } = deps;

  /** Undefined when the client was disabled or given another secret since it was checked. */
  function issue(client: Client, scopes: readonly Scope[], address: string): Promise<string | undefined> {
    return database.transaction(async (query) => {
      // Those revoke what was issued before them; so nothing may be issued after them for the old secret.
      if (!(await createClientStore(query).hold(client))) return undefined;
      await noteClientUse(query, client.name, address);
      return tokens.forClient(client.name, scopes);
    });
  }

  /** Throws 429 unchecked after too many failures, for a client that is not there as for one that is. */
  async function attempt(name: string, secret: string, wished: string | undefined, address: string) {
    let client: Client | undefined;
    let valid = false;
    // What is no name is nobody's, and may hold what PostgreSQL takes in no text.
    const isKnown = async (network: string) =>
      clientName.test(name) && (await isNetworkOfClient(database.query, name, network));
    const { result, limited } = await guesses.guard(
      { account: `client:${name}`, address, isKnown },
      async () => {
        client = await clients.find(name);
        valid = await passwords.verify(client?.secretHash, secret);
        if (!client || !valid || client.disabled) return undefined;
        const scopes = grantedScopes(client, wished);
        const accessToken = await issue(client, scopes, address);
        return accessToken === undefined ? undefined : { accessToken, scopes };
      },
    );
    return { client, valid, granted: result, limited };
  }

  return async ({ body, header, address }) => {
    const { name, secret } = readClientCredentials(header('authorization'), body);
    const { client, valid, granted, limited } = await passwords.admit(() =>
      attempt(name, secret, body.scope, address),
    );
    if (!granted) {
      const reason = reasonOf(client, valid);
      logger.info({ client: client?.name, reason }, 'a client was refused');
      const details = { reason, ...(client && { client: client.name }) };
      await audit(database.query, { event: 'client_refused', address, details });
      throw limited ?? invalidClient('The client is unknown or its secret is wrong.');
    }
    return granted;
  };
}
