import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto';

const algorithm = 'aes-256-gcm';
const sizes = { salt: 16, nonce: 12, tag: 16, key: 32 };
/** Makes guessing a human-chosen secret expensive: 32 MiB and about 0.1 s for each guess. */
const scryptCost = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 2 ** 20 };

function deriveKey(secret: string, salt: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(secret, salt, sizes.key, scryptCost, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

/**
 * Encrypts with AES-256-GCM under a key derived from the secret by scrypt (RFC 7914). `context` is authenticated but
 * not stored; `unseal` needs the same value. Returns salt, nonce, tag and ciphertext.
 */
export async function seal(plain: Buffer, secret: string, context: string): Promise<Buffer> {
  const salt = randomBytes(sizes.salt);
  const nonce = randomBytes(sizes.nonce);
  const cipher = createCipheriv(algorithm, await deriveKey(secret, salt), nonce).setAAD(Buffer.from(context));
  const ciphertext = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([salt, nonce, cipher.getAuthTag(), ciphertext]);
}

/** Decrypts the result of `seal`. Throws if the secret, the context or any bit differs. */
export async function unseal(sealed: Buffer, secret: string, context: string): Promise<Buffer> {
  const [nonceAt, tagAt] = [sizes.salt, sizes.salt + sizes.nonce];
  const ciphertextAt = tagAt + sizes.tag;
  const key = await deriveKey(secret, sealed.subarray(0, nonceAt));
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(nonceAt, tagAt), {
    authTagLength: sizes.tag,
  });
  decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(tagAt, ciphertextAt));
  return Buffer.concat([decipher.update(sealed.subarray(ciphertextAt)), decipher.final()]);
}
