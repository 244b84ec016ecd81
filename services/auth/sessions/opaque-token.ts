import { createHash, randomBytes } from 'node:crypto';

/** Returns 256 random bits in base64url, for opaque tokens. */
export const randomToken = (): string => randomBytes(32).toString('base64url');

/** Returns whether the text has the form of such a token. */
export const isToken = (value: string): boolean => /^[\w-]{43}$/.test(value);

/** Returns the hash under which a token is stored. Tokens are random, so a salt or a slow hash would add nothing. */
export const sha256 = (token: string): Buffer => createHash('sha256').update(token).digest();
