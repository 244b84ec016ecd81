import { generateKeyPairSync, randomUUID } from 'node:crypto';
import jwt from 'jsonwebtoken';

const kid = 'bench';

/** A person's access token as auth signs them, that outlives the bench, more of them, and the key to check them with. */
export function createToken(issuer: string, scope = '') {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const sign = (id: number) =>
    jwt.sign({ sub: String(id), sid: randomUUID(), jti: randomUUID(), scope }, privateKey, {
      algorithm: 'RS256',
      header: { alg: 'RS256', typ: 'at+jwt', kid },
      issuer,
      audience: 'content-platform',
      expiresIn: '6h',
    });
  return {
    token: sign(7),
    sign,
    pem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    keySet: JSON.stringify({
      keys: [{ ...publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid }],
    }),
  };
}
