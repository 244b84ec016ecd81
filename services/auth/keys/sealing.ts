import { createCipheriv, createDecipheriv, randomBytes, scrypt, type ScryptOptions } from 'node:crypto';
import { promisify } from 'node:util';

const algorithm = 'aes-256-gcm';
const sizes = { salt: 16, nonce: 12, tag: 16, key: 32 };
/** Makes guessing a human-chosen secret expensive: 32 MiB and about 0.1 s for each guess. */
const scryptCost: ScryptOptions = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 2 ** 20 };

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);
/** One salt for all values that this process seals: each has its own nonce, and reading them takes one derivation. */
const processSalt = randomBytes(sizes.salt);
const derived = new Map<string, Promise<Buffer>>();

function deriveKey(secret: string, salt: Buffer): Promise<Buffer> {
  const id = `${salt.toString('hex')} ${secret}`;
  const key = derived.get(id) ?? derive(secret, salt, sizes.key, scryptCost);
  derived.set(id, key);
  key.catch(() => derived.delete(id));
  return key;
}

/** Encrypts with AES-256-GCM under a 256-bit key. `decrypt` needs the same `context`, which is not stored. */
export function encrypt(plain: Buffer, key: Buffer, context: string): Buffer {
  const nonce = randomBytes(sizes.nonce);
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(context));
  const ciphertext = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]);
}

/** Decrypts the result of `encrypt`. Throws if the key, the context or any bit differs. */
export function decrypt(encrypted: Buffer, key: Buffer, context: string): Buffer {
  const ciphertextAt = sizes.nonce + sizes.tag;
  const nonce = encrypted.subarray(0, sizes.nonce);
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: sizes.tag });
  decipher.setAAD(Buffer.from(context)).setAuthTag(encrypted.subarray(sizes.nonce, ciphertextAt));
  return Buffer.concat([decipher.update(encrypted.subarray(ciphertextAt)), decipher.final()]);
}

/** Encrypts under a key derived from the secret by scrypt (RFC 7914). Returns the salt and the result of `encrypt`. */
export async function seal(plain: Buffer, secret: string, context: string): Promise<Buffer> {
  return Buffer.concat([processSalt, encrypt(plain, await deriveKey(secret, processSalt), context)]);
}

/** Decrypts the result of `seal`. Throws if the secret, the context or any bit differs. */
export async function unseal(sealed: Buffer, secret: string, context: string): Promise<Buffer> {
  const key = await deriveKey(secret, sealed.subarray(0, sizes.salt));
  return decrypt(sealed.subarray(sizes.salt), key, context);
}
