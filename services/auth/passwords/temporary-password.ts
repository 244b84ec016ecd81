import { randomBytes } from 'node:crypto';
import type { Passwords } from './passwords.ts';
import type { User } from '../user-store.ts';

/** 32 characters of 5 bits each, without 0, 1, l, o and capitals, because administrators read the password aloud. */
const alphabet = '23456789abcdefghijkmnpqrstuvwxyz';
const length = 16;
const form = new RegExp(`^[${alphabet}]{${length}}$`);
const inGroups = (characters: string) => characters.match(/.{4}/g)!.join('-');

/** Returns 80 random bits as `k7mp-x2dw-94hr-vbt3`, for temporary passwords and recovery codes (ASVS 5.0 6.4.1). */
export function makeRandomCode(): string {
  return inGroups(Array.from(randomBytes(length), (byte) => alphabet[byte % alphabet.length]).join(''));
}

/** Returns a code as it was made, from a typed one: capitals, full width, spaces, no dashes. undefined: not a code. */
export function normalizeCode(typed: string): string | undefined {
  // A Turkish keyboard makes İ from i: an I with a mark.
  const lower = typed.normalize('NFKD').toLowerCase();
  const characters = lower.replace(/[\s\p{M}\p{Pd}]/gu, '');
  return form.test(characters) ? inGroups(characters) : undefined;
}

/** `own`: chosen by the user. `temporary`: generated for the user; it may be used or expired. */
export type PasswordKind = 'own' | 'temporary';

/** Returns which password matches. For a wrong one, the work does not depend on whether the user exists. */
export async function matchPassword(
  passwords: Passwords,
  user: Pick<User, 'passwordHash' | 'tempPasswordHash'> | undefined,
  password: string,
): Promise<PasswordKind | undefined> {
  if (await passwords.verify(user?.passwordHash, password)) return 'own';
  const temporary = normalizeCode(password);
  if (temporary === undefined) return undefined;
  return (await passwords.verify(user?.tempPasswordHash, temporary)) ? 'temporary' : undefined;
}
