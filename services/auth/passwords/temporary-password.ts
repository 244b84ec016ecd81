import { randomBytes } from 'node:crypto';
import type { Passwords } from './passwords.ts';
import type { User } from '../user-store.ts';

/** Without 0, 1, l and o, and in lower case alone: it is read aloud. 32 of them are 5 bits each. */
const alphabet = '23456789abcdefghijkmnpqrstuvwxyz';
const groups = 4;
const groupLength = 4;
const form = new RegExp(`^[${alphabet}]{${groups * groupLength}}$`);
const group = new RegExp(`.{${groupLength}}`, 'g');

/** 80 random bits as `k7mp-x2dw-94hr-vbt3`. ASVS 5.0 6.4.1: as strong as what people may choose. */
export function makeTemporaryPassword(): string {
  return Array.from({ length: groups }, () =>
    Array.from(randomBytes(groupLength), (byte) => alphabet[byte % alphabet.length]).join(''),
  ).join('-');
}

/** It was read aloud: it may be typed in capitals, with spaces or without the dashes. Undefined: it is none of ours. */
function asMade(typed: string): string | undefined {
  const characters = typed.toLowerCase().replace(/[\s-]/g, '');
  return form.test(characters) ? characters.match(group)!.join('-') : undefined;
}

/** `own`: the one that the person chose. `temporary`: the one that was made for them, be it used or expired. */
export type PasswordKind = 'own' | 'temporary';

/**
 * Which of the user's passwords it is; undefined: none. The work depends on what was typed and not on what the user
 * has, so its time tells nobody whether a temporary one was made.
 */
export async function recognise(
  passwords: Passwords,
  user: Pick<User, 'passwordHash' | 'tempPasswordHash'> | undefined,
  password: string,
): Promise<PasswordKind | undefined> {
  if (await passwords.verify(user?.passwordHash, password)) return 'own';
  const temporary = asMade(password);
  if (temporary === undefined) return undefined;
  return (await passwords.verify(user?.tempPasswordHash, temporary)) ? 'temporary' : undefined;
}
