import { HttpError } from '@content-platform/chassis';
import { machineScopes, type Scope } from '@content-platform/contract';
import { invalidClient, readClientCredentials } from '../client-credentials.ts';
import { clientName, type Client } from '../client-store.ts';
import type { AuthContext } from '../context.ts';
import type { Grant } from './grant.ts';

/** Returns all scopes of the client if `requested` is missing or empty (RFC 6749 §3.1). */
function grantedScopes(client: Client, requested: string | undefined): Scope[] {
  // A client of an earlier release may have other scopes.
  const allowed = client.scopes.filter((scope) => machineScopes.includes(scope));
  if (!requested) return allowed;
  const names = new Set(requested.split(' '));
  const granted = allowed.filter((scope) => names.has(scope));
  if (granted.length === names.size) return granted;
  throw new HttpError('invalid_scope', `The client has: ${allowed.join(' ') || 'no scopes'}.`);
}

/** RFC 6749 §4.4. Guesses of secrets are throttled like guesses of passwords, as §2.3.1 requires. */
export function clientCredentials({ database, passwords, throttle, tokens, logger }: AuthContext): Grant {
  /** Returns undefined if the client was disabled or its secret was replaced since the check. */
  function issue(client: Client, scopes: readonly Scope[], address: string): Promise<string | undefined> {
    return database.transaction(async ({ clients, audit }) => {
      // Disabling a client or rotating its secret revokes the tokens issued until then, so no token may be issued
      // later.
      if (!(await clients.lockIfUnchanged(client))) return undefined;
      await audit.addClientToken(client.name, address);
      return tokens.forClient(client.name, scopes);
    });
  }

  /** Returns a token or a refusal, whose `reason` goes to the log and the audit log, never to the client. */
  async function grant(name: string, secret: string, requested: string | undefined, address: string) {
    const client = await database.clients.find(name);
    const valid = await passwords.verify(client?.secretHash, secret);
    if (!client) return { ok: false, reason: 'unknown client' } as const;
    if (!valid) return { ok: false, client: name, reason: 'wrong secret' } as const;
    if (!client.disabled) {
      const scopes = grantedScopes(client, requested);
      const accessToken = await issue(client, scopes, address);
      if (accessToken !== undefined) return { ok: true, accessToken, scopes } as const;
    }
    return { ok: false, client: name, reason: 'disabled or rotated' } as const;
  }

  return async ({ body, header, address }) => {
    const { name, secret } = readClientCredentials(header('authorization'), body);
    // PostgreSQL rejects some characters; a client with such a name cannot exist.
    const isKnown = async (network: string) =>
      clientName.test(name) && (await database.audit.isNetworkOfClient(name, network));
    const { outcome, limited } = await passwords.limit(() =>
      throttle.run({ account: `client:${name}`, address, isKnown }, () =>
        grant(name, secret, body.scope, address),
      ),
    );
    if (outcome.ok) return { accessToken: outcome.accessToken, scopes: outcome.scopes };
    const { ok: _, ...details } = outcome;
    logger.info(details, 'a client was refused');
    await database.audit.add({ event: 'client_refused', address, details });
    throw limited ?? invalidClient('The client is unknown or its secret is wrong.');
  };
}
