import type { Caller } from '@content-platform/chassis';
import type { Whose } from './letter-store.ts';

/** Returns whose letters the caller may read: their own, with letters:write those of every user. */
export function readableBy({ id, scopes }: Extract<Caller, { kind: 'user' }>): Whose {
  return scopes.has('letters:write') ? 'anybody' : id;
}
