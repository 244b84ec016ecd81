import { randomBytes } from 'node:crypto';
import type { Passwords } from './passwords.ts';
import type { User } from '../user-store.ts';

/** 32 characters of 5 bits each, without 0, 1, l, o and capitals, because the password is read aloud. */
const alphabet = '23456789abcdefghijkmnpqrstuvwxyz';
const length = 16;
const form = new RegExp(`^[${alphabet}]{${length}}$`);
const inGroups = (characters: string) => characters.match(/.{4}/g)!.join('-');

/** 80 random bits as `k7mp-x2dw-94hr-vbt3`. ASVS 5.0 6.4.1: as strong as what people may choose. */
export function makeTemporaryPassword(): string {
  return inGroups(Array.from(randomBytes(length), (byte) => alphabet[byte % alphabet.length]).join(''));
}

/**
 * The form in which a temporary password was made: users may type it in capitals, with spaces or without the dashes.
 * Undefined if it cannot be a temporary password.
 */
function normalizeTemporary(typed: string): string | undefined {
  const characters = typed.toLowerCase().replace(/[\s-]/g, '');
  return form.test(characters) ? inGroups(characters) : undefined;
}

/** `own`: the user chose the password. `temporary`: it was made for the user; it may be used or expired. */
export type PasswordKind = 'own' | 'temporary';

/**
 * Which of the user's passwords it is; undefined: none. The work depends on the typed password and not on the user, so
 * that its time does not tell whether the user exists or has a temporary password.
 */
export async function matchPassword(
  passwords: Passwords,
  user: Pick<User, 'passwordHash' | 'tempPasswordHash'> | undefined,
  password: string,
): Promise<PasswordKind | undefined> {
  if (await passwords.verify(user?.passwordHash, password)) return 'own';
  const temporary = normalizeTemporary(password);
  if (temporary === undefined) return undefined;
  return (await passwords.verify(user?.tempPasswordHash, temporary)) ? 'temporary' : undefined;
}
