import { HttpError } from '@content-platform/chassis';
import { machineScopes, type Body, type Scope, type token } from '@content-platform/contract';
import { clientName, type Client } from '../client-store.ts';
import type { AuthContext } from '../context.ts';
import type { Grant } from './grant.ts';

const basic = /^basic +([A-Za-z0-9+/]+={0,2})$/i;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Returns the 401 with the challenge that RFC 6749 §5.2 requires. */
function invalidClient(message: string, cause?: unknown): HttpError<'invalid_client'> {
  return new HttpError('invalid_client', message, {
    headers: { 'WWW-Authenticate': 'Basic realm="content-platform", charset="UTF-8"' },
    cause,
  });
}

/** Decodes application/x-www-form-urlencoded. Throws URIError. */
const formDecode = (value: string) => decodeURIComponent(value.replaceAll('+', ' '));

function fromHeader(authorization: string) {
  const encoded = basic.exec(authorization)?.[1];
  if (encoded === undefined) throw invalidClient('Send id and secret in Authorization as Basic.');
  try {
    const pair = utf8.decode(Buffer.from(encoded, 'base64'));
    const colon = pair.indexOf(':');
    if (colon === -1) throw new Error('no colon');
    return { name: formDecode(pair.slice(0, colon)), secret: formDecode(pair.slice(colon + 1)) };
  } catch (cause) {
    throw invalidClient('Authorization is not well-formed: base64 of the form-encoded id:secret.', cause);
  }
}

/** Reads id and secret from Basic, each form-encoded, or from the body (RFC 6749 §2.3.1). Throws 400 or 401. */
export function readClientCredentials(
  authorization: string | undefined,
  { client_id: name, client_secret: secret }: Pick<Body<typeof token>, 'client_id' | 'client_secret'>,
) {
  if (authorization === undefined) {
    if (name !== undefined && secret !== undefined) return { name, secret };
    throw invalidClient("Send the client's id and secret, in Authorization or in the body.");
  }
  const credentials = fromHeader(authorization);
  // The body may repeat the id of the client in Authorization; any other id is a second method.
  if (secret !== undefined || (name !== undefined && name !== credentials.name)) {
    throw new HttpError('invalid_request', 'Authenticate in Authorization or in the body, not in both.');
  }
  return credentials;
}

type Credentials = ReturnType<typeof readClientCredentials>;

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

/** Issues tokens to machine clients (RFC 6749 §4.4). Throttles guesses of secrets like those of passwords (§2.3.1). */
export function clientCredentials({ database, passwords, throttle, tokens, logger }: AuthContext): Grant {
  /** Returns undefined if the client was disabled or its secret was replaced since the check. */
  function issue(client: Client, scopes: readonly Scope[], address: string): Promise<string | undefined> {
    return database.transaction(async ({ clients, audit }) => {
      // Disabling a client or rotating its secret revokes earlier tokens only, so no token may be issued later.
      if (!(await clients.lockIfUnchanged(client))) return undefined;
      await audit.addClientToken(client.name, address);
      return tokens.forClient(client.name, scopes);
    });
  }

  /** Returns a token or a refusal, whose `reason` goes to the log and the audit log, never to the client. */
  async function grant({ name, secret }: Credentials, requested: string | undefined, address: string) {
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
    const attempt = { account: `client:${name}`, address, isKnown };
    const check = () => grant({ name, secret }, body.scope, address);
    const { outcome, limited } = await passwords.limit(() => throttle.run(attempt, check));
    if (outcome.ok) return { accessToken: outcome.accessToken, scopes: outcome.scopes };
    const { ok: _, ...details } = outcome;
    logger.info(details, 'a client was refused');
    await database.audit.add({ event: 'client_refused', address, details });
    throw limited ?? invalidClient('The client is unknown or its secret is wrong.');
  };
}
