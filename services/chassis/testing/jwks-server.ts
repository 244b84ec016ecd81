// Serves a key set over HTTP, for the tests of tokens and keys.
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { startHttpServer } from '../../../test/support/http-server.ts';

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

/** `answer` can be replaced; `paths` are the paths of the requests. */
export async function startJwksServer(...keys: TestKey[]) {
  const served: { keys: TestKey[]; answer: RequestListener; paths: string[] } = {
    keys,
    paths: [],
    answer: (_request, response) => response.end(JSON.stringify({ keys: served.keys.map(({ jwk }) => jwk) })),
  };
  const { origin, close: stop } = await startHttpServer((request, response) => {
    served.paths.push(request.url ?? '');
    served.answer(request, response);
  });
  return Object.assign(served, { origin, url: `${origin}/.well-known/jwks.json`, stop });
}
export type JwksServer = Awaited<ReturnType<typeof startJwksServer>>;
