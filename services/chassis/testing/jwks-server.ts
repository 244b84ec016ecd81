// A key set on a real HTTP server, for the tests of tokens and keys.
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TestKey {
  kid: string;
  publicKey: KeyObject;
  privateKey: KeyObject;
  jwk: Record<string, unknown>;
}

export function createTestKey(kid: string): TestKey {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const { n, e } = publicKey.export({ format: 'jwk' });
  return { kid, publicKey, privateKey, jwk: { kty: 'RSA', use: 'sig', alg: 'RS256', kid, n, e } };
}

/** `answer` can be replaced; `paths` are the requests that came. */
export async function startJwksServer(...keys: TestKey[]) {
  const served: { keys: TestKey[]; answer: RequestListener; paths: string[] } = {
    keys,
    paths: [],
    answer: (_request, response) => response.end(JSON.stringify({ keys: served.keys.map(({ jwk }) => jwk) })),
  };
  const server = createServer((request, response) => {
    served.paths.push(request.url ?? '');
    served.answer(request, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(served, {
    origin,
    url: `${origin}/.well-known/jwks.json`,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  });
}
export type JwksServer = Awaited<ReturnType<typeof startJwksServer>>;
