import { generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto';
import { startHttpServer } from '../../test/support/http-server.ts';

export const issuer = 'http://gateway.test';
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const kid = 'test-key';

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs a token: merges header and claims over those of a valid token of user 7; undefined removes a claim. */
export function mint(
  claims: Record<string, unknown> = {},
  header: Record<string, unknown> = {},
  key: KeyObject = privateKey,
): string {
  const now = Math.floor(Date.now() / 1000);
  const common = { iss: issuer, aud: 'content-platform', iat: now, exp: now + 900, jti: randomUUID() };
  const person = { ...common, sub: '7', sid: 'session', scope: '' };
  const text = `${encode({ alg: 'RS256', typ: 'at+jwt', kid, ...header })}.${encode({ ...person, ...claims })}`;
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
}

export const withScopes = (...scopes: string[]) => mint({ scope: scopes.join(' ') });

export const machineToken = (name: string, ...scopes: string[]) =>
  mint({ sub: name, client_id: name, sid: undefined, scope: scopes.join(' ') });

export async function startKeyServer() {
  const key = { ...publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid };
  const { origin, close } = await startHttpServer((_request, response) =>
    response.end(JSON.stringify({ keys: [key] })),
  );
  return { url: `${origin}/.well-known/jwks.json`, close };
}
