import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import jwt from 'jsonwebtoken';
import { startHttpServer } from '../../../test/support/http-server.ts';
import { client } from '../../../test/support/identity.ts';

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const json = (response: ServerResponse, status: number, body: unknown) =>
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));

export const otherKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
export const nonce = 'the nonce of the login';

const asItShouldBe = () => ({
  metadata: {} as Record<string, unknown>,
  claims: {} as Record<string, unknown>,
  key: privateKey as KeyObject | string,
  header: { alg: 'RS256', kid: 'one' } as jwt.JwtHeader,
  idToken: undefined as string | undefined,
  userinfo: { sub: 'someone', email: 'someone@example.com', email_verified: true } as Record<string, unknown>,
  /** Replies that replace the usual ones, by path. */
  answers: {} as Record<string, (response: ServerResponse) => unknown>,
  asked: [] as string[],
});

/** An identity provider that misbehaves as a test sets. By default, it is correct. */
export async function startEvilProvider(evil = asItShouldBe()) {
  function sign(issuer: string): string {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, sub: 'someone', aud: client.id, iat: now, exp: now + 60, nonce };
    const told = Object.entries({ ...claims, ...evil.claims }).filter(([, value]) => value !== undefined);
    const { alg } = evil.header as { alg: jwt.Algorithm };
    const options = { algorithm: alg, header: evil.header };
    return jwt.sign(Object.fromEntries(told), evil.key, options);
  }

  const { origin: issuer, close } = await startHttpServer((request, response) => {
    const path = request.url ?? '';
    evil.asked.push(path);
    const usual: Record<string, () => unknown> = {
      '/.well-known/openid-configuration': () => ({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        userinfo_endpoint: `${issuer}/userinfo`,
        jwks_uri: `${issuer}/jwks`,
        id_token_signing_alg_values_supported: ['RS256', 'RS512'],
        ...evil.metadata,
      }),
      '/jwks': () => ({
        keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', use: 'sig' }],
      }),
      '/token': () => ({
        access_token: 'opaque',
        token_type: 'Bearer',
        id_token: evil.idToken ?? sign(issuer),
      }),
      '/userinfo': () => evil.userinfo,
    };
    if (evil.answers[path]) return evil.answers[path](response);
    // Like GitLab, it does not decode id and secret.
    const basic = Buffer.from(request.headers.authorization?.slice(6) ?? '', 'base64');
    if (path === '/token' && !basic.includes(':a-secret')) return json(response, 401, {});
    const answer = usual[path]?.();
    return json(response, answer ? 200 : 404, answer ?? {});
  });
  return Object.assign(evil, {
    issuer,
    close,
    sign: () => sign(issuer),
  });
}
export type EvilProvider = Awaited<ReturnType<typeof startEvilProvider>>;

/** Starts the provider before the tests of a file, and restores the correct behaviour after each of them. */
export function useEvilProvider(): EvilProvider {
  const evil = asItShouldBe() as EvilProvider;
  beforeAll(async () => void (await startEvilProvider(evil)));
  afterEach(() => void Object.assign(evil, asItShouldBe()));
  afterAll(() => evil.close());
  return evil;
}
