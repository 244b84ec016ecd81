import { createHash, randomBytes } from 'node:crypto';

/** 256 random bits in base64url: what a token that says nothing is made of. */
export function randomToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Whether it could be such a token. */
export function isToken(value: string): boolean {
  return /^[\w-]{43}$/.test(value);
}

/** What is kept of a token. It is as random as can be, so that a salt or a slow hash would add nothing. */
export function sha256(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
