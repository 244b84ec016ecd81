import { createHash, randomBytes } from 'node:crypto';

/** Returns 256 random bits in base64url, for opaque tokens. */
export function randomToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Returns whether the text has the form of such a token. */
export function isToken(value: string): boolean {
  return /^[\w-]{43}$/.test(value);
}

/** Returns the hash under which a token is stored. Tokens are random, so a salt or a slow hash would add nothing. */
export function sha256(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
