import { randomBytes } from 'node:crypto';
import type { FailedJobClass } from '@content-platform/contract';
import { pick, type Random } from '../cache/testing/random.ts';

/** Unprocessable values, by the class of their failed job. Each n gives a different value. */
const kinds: [FailedJobClass, (n: number, random: Random) => Buffer | string | null][] = [
  ['not_json', (n) => `not JSON ${n}`],
  ['not_json', (n) => `{"model":"webform","id":${n}`],
  ['not_json', (_, random) => Buffer.concat([Buffer.of(0xff, 0), randomBytes(pick(random, 64))])],
  ['empty', () => null],
  ['empty', () => ''],
  ['too_large', (n, random) => `${n}${'x'.repeat([16_384, 100_000, 900_000][pick(random, 3)]!)}`],
  ['unknown_model', (n) => JSON.stringify({ model: 'letter', id: n })],
  ['invalid_event', (n) => JSON.stringify({ model: 'webform', id: String(n) })],
  ['invalid_event', (n) => JSON.stringify([{ model: 'webform', id: n }])],
  // Out of range.
  ['invalid_event', (n) => JSON.stringify({ model: 'pathway', id: -n })],
  ['invalid_event', (n) => `{"model":"pathway","id":${2 ** 53 + 2 * n}}`],
];

/** Returns the n-th (from 1) event that must become a failed job: each kind in turn. */
export function unprocessableEvent(n: number, random: Random) {
  const [name, make] = kinds[n % kinds.length]!;
  const value = make(n, random);
  return { class: name, value: value === null ? null : Buffer.from(value) };
}
