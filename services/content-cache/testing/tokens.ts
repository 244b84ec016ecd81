import jwt from 'jsonwebtoken';
import { audience } from '@content-platform/chassis';
import { createTestKey } from '@content-platform/chassis/testing/jwks-server.ts';
import { startHttpServer } from '../../../test/support/http-server.ts';

const issuer = 'http://platform.test';
const { kid, privateKey, jwk } = createTestKey('test');

/** Starts an auth service that serves its keys and an empty revocation list; `token` signs with these keys. */
export async function createTestTokens() {
  const { origin, close } = await startHttpServer(({ url }, response) => {
    const isKeys = url === '/.well-known/jwks.json';
    response.end(JSON.stringify(isKeys ? { keys: [jwk] } : { revocations: [], last: 0 }));
  });
  const sign = (subject: string, claims: Record<string, string>, scopes: string[]): string =>
    jwt.sign({ ...claims, scope: scopes.join(' ') }, privateKey, {
      algorithm: 'RS256',
      header: { alg: 'RS256', typ: 'at+jwt', kid },
      issuer,
      audience,
      subject,
      jwtid: 'test',
      expiresIn: 900,
    });
  return {
    authUrl: origin,
    issuer,
    /** Signs a token of the machine client `cms`. */
    token: (...scopes: string[]) => sign('cms', { client_id: 'cms' }, scopes),
    /** Signs a token of user 7. */
    userToken: (...scopes: string[]) => sign('7', { sid: '1' }, scopes),
    tokenOf: (user: number) => sign(String(user), { sid: '1' }, []),
    close,
  };
}
