import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Outcome } from '../processing/job.ts';
import * as corpus from '../testing/corpus.ts';
import { createTestPool, type TestPool } from '../testing/pools.ts';

let pool: TestPool;
beforeAll(async () => {
  pool = await createTestPool();
});
afterAll(() => pool?.close());

test('accepts or refuses each of 500 mutants, and no worker process dies', async () => {
  const files = [...Object.values(await corpus.validPictures()), corpus.pdf];
  const mutation = fc.record({
    file: fc.nat(files.length - 1),
    cuts: fc.array(
      fc.record({
        at: fc.nat(999_999),
        bytes: fc.uint8Array({ maxLength: 16 }),
        drop: fc.nat(64),
      }),
      { minLength: 1, maxLength: 8 },
    ),
  });
  const mutants = fc.sample(mutation, { numRuns: 500, seed: 20_26 }).map(({ file, cuts }) =>
    cuts.reduce((bytes, { at, bytes: put, drop }) => {
      // Changes only bytes after the first ones, which determine the type, so that most mutants reach a decoder.
      const place = 32 + Math.floor((at / 1_000_000) * (bytes.length - 32));
      return Buffer.concat([bytes.subarray(0, place), put, bytes.subarray(place + drop)]);
    }, files[file]!),
  );
  const counts: Record<string, number> = {};
  const outcomes: Outcome[] = await Promise.all(mutants.map((mutant) => pool.process(mutant)));
  for (const outcome of outcomes) {
    const name = outcome.kind === 'refused' ? outcome.refusal : outcome.kind;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  console.log(`500 mutants: ${JSON.stringify(counts)}`);
  expect(Object.keys(counts).toSorted()).toEqual(
    ['animated_image', 'image_too_large', 'pdf', 'image', 'unreadable_file', 'unsupported_media_type'].filter(
      (name) => name in counts,
    ),
  );
  expect(pool.log).toEqual([]);
});
