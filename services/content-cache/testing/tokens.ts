import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import jwt from 'jsonwebtoken';
import { audience } from '@content-platform/chassis';
import { listen } from './listen.ts';

const jwksPath = '/.well-known/jwks.json';

/** An auth service that only tells its keys, and that nothing was revoked, and tokens that are signed with them. */
export async function createTestTokens() {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const kid = 'test';
  const jwk = { ...publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid };
  const server = createServer(({ url }, response) =>
    response.end(JSON.stringify(url === jwksPath ? { keys: [jwk] } : { revocations: [], last: 0 })),
  );
  const authUrl = await listen(server);
  const issuer = 'http://platform.test';
  return {
    authUrl,
    issuer,
    /** Of the machine client `cms`. */
    token: (...scopes: string[]) =>
      jwt.sign({ client_id: 'cms', scope: scopes.join(' ') }, privateKey, {
        algorithm: 'RS256',
        header: { alg: 'RS256', typ: 'at+jwt', kid },
        issuer,
        audience,
        subject: 'cms',
        jwtid: 'test',
        expiresIn: 900,
      }),
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}
