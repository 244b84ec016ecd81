import { HttpError, type Handler, type Logger } from '@content-platform/chassis';
import type { Scope, token as contract } from '@content-platform/contract';
import { accessTokenLifetime, type AccessTokens } from '../access-tokens.ts';
import { invalidClient, readClientCredentials, type ClientCredentials } from '../client-credentials.ts';
import type { Client, ClientStore } from '../client-store.ts';
import type { Passwords } from '../passwords.ts';

export interface TokenDeps {
  clients: ClientStore;
  passwords: Passwords;
  tokens: AccessTokens;
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

/** The client credentials grant, RFC 6749 §4.4. */
export function token({ clients, passwords, tokens, logger }: TokenDeps): Handler<typeof contract> {
  async function authenticate({ name, secret }: ClientCredentials): Promise<Client> {
    const { client, valid } = await passwords.admit(async () => {
      const client = await clients.find(name);
      return { client, valid: await passwords.verify(client?.secretHash, secret) };
    });
    if (client && valid && !client.disabled) return client;
    logger.info({ client: client?.name }, 'a client was refused');
    throw invalidClient('The client is unknown or its secret is wrong.');
  }

  return async ({ body, header }) => {
    const credentials = readClientCredentials(header('authorization'), body);
    if (body.grant_type !== 'client_credentials') {
      throw new HttpError(400, 'unsupported_grant_type', 'The grant type must be client_credentials.');
    }
    const client = await authenticate(credentials);
    const scopes = grantedScopes(client, body.scope);
    return {
      status: 200,
      body: {
        access_token: tokens.forClient(client.name, scopes),
        token_type: 'Bearer',
        expires_in: accessTokenLifetime,
        scope: scopes.join(' '),
      },
      // RFC 6749 §5.1 asks for it beside Cache-Control.
      headers: { Pragma: 'no-cache' },
    };
  };
}
