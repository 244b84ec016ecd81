import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { fuzzedTokens, tokenAttacks } from '@content-platform/chassis/testing/token-attacks.ts';
import { startGateway, type TestGateway } from '../testing/gateway.ts';
import { distribute, createRawClient, envelopeProblem } from '../testing/raw-client.ts';
import { issuer, signingKey } from '../testing/tokens.ts';
import { startUpstream, type RecordingUpstream } from '../testing/upstream.ts';
import { writeResult } from '../../test/support/results.ts';

const seed = Number(process.env['PROOF_SEED'] ?? Date.now() % 1_000_000_000);
const { valid, other, attacks } = tokenAttacks({ ...signingKey, issuer });
/** Time limit of one request in ms, with room for a busy machine. */
const limit = 10_000;

let upstream: RecordingUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ services: { auth: upstream.url } });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Tokens that a header carries unchanged. The verifier's own proof covers the others. */
const sendable = /^[!-~\x80-\xff]{0,14000}$/;
let refused = 0;
let slowest = 0;

async function wrongOf(list: readonly (readonly [name: string, token: string])[]): Promise<string[]> {
  const wrong: string[] = [];
  await distribute(gateway.origin, list, 12, async (client, [name, token]) => {
    const start = performance.now();
    const head = `GET /api/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;
    const reply = await client.ask(`${head}\r\n`);
    slowest = Math.max(slowest, performance.now() - start);
    const problem = reply?.status === 401 ? envelopeProblem(reply) : `answered ${reply?.status}`;
    if (problem) wrong.push(`${name}: ${problem}: ${token.slice(0, 2_000)}`);
    else refused += 1;
  });
  return wrong;
}

const askedFor = attacks.filter(([, token]) => sendable.test(token));
const fuzzed = fuzzedTokens(valid, other, 5_000, seed).filter((token) => sendable.test(token));

test('accepts only the valid token and returns 401 for every other', async () => {
  const client = createRawClient(gateway.origin);
  const good = await client.ask(`GET /api/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${valid}\r\n\r\n`);
  client.close();
  expect(good?.status).toBe(200);
  expect(await wrongOf(askedFor)).toEqual([]);
  expect((await wrongOf(fuzzed.map((token) => [`seed ${seed}`, token]))).slice(0, 20)).toEqual([]);
  expect(upstream.received).toHaveLength(1);
  expect(slowest).toBeLessThan(limit);
}, 180_000);

afterAll(() =>
  writeResult('faults', 'tokens-gateway', {
    seed,
    attacks: askedFor.length,
    fuzzed: fuzzed.length,
    refused,
    // Only the request with the valid token reached the service.
    forwarded: upstream.received.length,
    slowestMs: slowest,
  }),
);
