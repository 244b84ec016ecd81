import { afterAll, expect, test } from '@jest/globals';
import { HttpError } from '../http-error.ts';
import { createTestKey } from '../testing/jwks-server.ts';
import { fuzzedTokens, tokenAttacks } from '../testing/token-attacks.ts';
import { createTokenVerifier } from '../tokens.ts';
import { writeResult } from '../../../test/support/results.ts';

const seed = Number(process.env['PROOF_SEED'] ?? Date.now() % 1_000_000_000);
const issuer = 'http://platform.test';
const ours = createTestKey('key-1');
const { valid, other, attacks } = tokenAttacks({ ...ours, issuer });
const keys = {
  has: (kid: string) => kid === ours.kid,
  get: async (kid: string) => (kid === ours.kid ? ours.publicKey : undefined),
};
const tokens = createTokenVerifier(issuer, keys, { isRevoked: () => false });
/** Time limit of one token in ms; the machine may be busy. */
const limit = 2_000;

let refused = 0;
let slowest = 0;

/** Tokens that were accepted, or refused with another status than 401. */
async function wrongOf(list: readonly [name: string, token: string][]): Promise<string[]> {
  const wrong: string[] = [];
  for (const [name, token] of list) {
    const start = performance.now();
    const outcome: unknown = await tokens.verify(token).catch((error: unknown) => error);
    slowest = Math.max(slowest, performance.now() - start);
    if (outcome instanceof HttpError && outcome.status === 401) refused += 1;
    else
      wrong.push(
        `${name}: ${outcome instanceof Error ? outcome.message : 'accepted'}: ${token.slice(0, 2_000)}`,
      );
  }
  return wrong;
}

const fuzzed = fuzzedTokens(valid, other, 100_000, seed);

test('refuses every published attack and 100,000 nearly valid tokens, also while valid tokens are cached', async () => {
  for (const token of [valid, other]) expect(await tokens.verify(token)).toMatchObject({ kind: 'user' });
  const named = fuzzed.map((token): [string, string] => [`seed ${seed}`, token]);
  expect((await wrongOf([...attacks, ...named])).slice(0, 20)).toEqual([]);
  expect(slowest).toBeLessThan(limit);
}, 180_000);

afterAll(() =>
  writeResult('faults', 'tokens-verifier', {
    seed,
    attacks: attacks.length,
    fuzzed: fuzzed.length,
    refused,
    slowestMs: slowest,
  }),
);
