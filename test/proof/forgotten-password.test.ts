import { afterAll, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { forgotPassword } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { percentile } from '../bench/percentiles.ts';
import { newAddress } from '../support/accounts.ts';
import { closeRecords, database } from '../support/records.ts';
import { writeResult } from '../support/results.ts';
import { stack } from '../support/stack.ts';

const requestsOfEach = 1_000;
const concurrency = 20;
/** 0.5: the durations reveal nothing. With 1,000 requests of each kind, the standard error of the area is 0.013. */
const maxArea = 0.55;

afterAll(closeRecords);

/** Users whom no request has named before, so that each of their requests leads to a mail. */
async function addUsers(): Promise<string[]> {
  const emails = Array.from({ length: requestsOfEach }, () => `${randomUUID()}@example.com`);
  const text = `INSERT INTO auth.user (email, name, roles) SELECT unnest($1::text[]), 'A Person', '{user}'`;
  await database().query(text, [emails]);
  return emails;
}

/** Returns the duration of the request in ms. */
async function forgot(email: string): Promise<number> {
  const start = performance.now();
  const headers = { 'X-Forwarded-For': newAddress() };
  const { status } = await call(stack().gateway, forgotPassword, { body: { email }, headers });
  const ms = performance.now() - start;
  expect(status).toBe(202);
  return ms;
}

/**
 * Returns the area under the ROC curve: the probability that a time of `known` is longer than a time of `unknown`.
 */
function areaUnderCurve(known: readonly number[], unknown: readonly number[]): number {
  const longer = known.map((one) => unknown.filter((other) => one > other).length);
  return longer.reduce((sum, count) => sum + count, 0) / (known.length * unknown.length);
}

test('the duration of a request for a new password does not reveal whether the email has an account', async () => {
  const times = { known: [] as number[], unknown: [] as number[] };
  const users = await addUsers();
  const pairs = users.flatMap((email, index) => {
    const both = [
      { kind: 'known' as const, email },
      { kind: 'unknown' as const, email: `${randomUUID()}@example.com` },
    ];
    return index % 2 ? both : both.toReversed();
  });
  const waiting = pairs.values();
  async function sendNext(): Promise<void> {
    for (const { kind, email } of waiting) times[kind].push(await forgot(email));
  }
  // The first requests of a process are slower.
  await Promise.all(Array.from({ length: concurrency }, () => forgot(`${randomUUID()}@example.com`)));
  try {
    await Promise.all(Array.from({ length: concurrency }, sendNext));
  } finally {
    await database().query('DELETE FROM auth.user WHERE email = ANY ($1)', [users]);
  }
  const area = areaUnderCurve(times.known, times.unknown);
  const p50 = (list: number[]) => Math.round(percentile(list, 0.5));
  writeResult('faults', 'forgotten-password', {
    requests: pairs.length,
    area,
    p50Ms: { known: p50(times.known), unknown: p50(times.unknown) },
  });
  // An attacker could also read a shorter time.
  expect(Math.max(area, 1 - area)).toBeLessThanOrEqual(maxArea);
}, 600_000);
