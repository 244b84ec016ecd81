import { generateKeyPairSync, randomUUID } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { freeRow } from '../../support/ports.ts';
import { issuer } from '../own-services.ts';
import { startNode } from './processes.ts';

const kid = 'bench';

/** Starts a stub of auth and of all other services (upstream.ts). Its tokens outlive the bench. */
export async function startAuth(scope = '') {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  // Verifiers limit a token's lifetime, which counts from iat, so iat is shortly before exp.
  const exp = Math.floor(Date.now() / 1000) + 6 * 3_600;
  const times = { iat: exp - 900, exp };
  const sign = (id: number) =>
    jwt.sign({ ...times, sub: String(id), sid: randomUUID(), jti: randomUUID(), scope }, privateKey, {
      algorithm: 'RS256',
      header: { alg: 'RS256', typ: 'at+jwt', kid },
      issuer,
      audience: 'content-platform',
    });
  const keys = [{ ...publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid }];
  const port = await freeRow(1);
  const env = { PORT: String(port), KEY_SET: JSON.stringify({ keys }) };
  const { pid } = startNode('test/bench/gateway/upstream.ts', env);
  return {
    url: `http://127.0.0.1:${port}`,
    pid: pid!,
    sign,
    headers: { authorization: `Bearer ${sign(7)}` },
    publicKeyPem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}
