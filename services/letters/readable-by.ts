import type { Caller } from '@content-platform/chassis';
import type { Whose } from './letter-store.ts';

/** Whose letters a person may read by their ids: their own, with letters:write anybody's. */
export function readableBy({ id, scopes }: Extract<Caller, { kind: 'user' }>): Whose {
  return scopes.has('letters:write') ? 'anybody' : id;
}
