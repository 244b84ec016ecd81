import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { createLogger, createRedis } from '@content-platform/chassis';
import { startRedis, type RedisServer } from '../../../test/support/redis-server.ts';
import { until } from '../../../test/support/wait.ts';
import { type Backoff, createMemoryCounts, type FailureCounts } from './failure-counts.ts';
import { createRedisCounts } from './redis-counts.ts';

/**
 * Time passes in units of 100 s, of which a busy machine does not lose one: in memory on a clock of the test's own, in
 * Redis by making everything that is counted older.
 */
const unit = 100_000;
const backoff: Backoff = { window: 20 * unit, shortest: unit, longest: 8 * unit };

interface Scene {
  counts: FailureCounts;
  pass(units: number): Promise<void>;
}

let now = 0;
async function inMemory(): Promise<Scene> {
  return {
    counts: createMemoryCounts(backoff, () => now),
    pass: async (units) => void (now += units * unit),
  };
}

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = createRedis(server.url, createLogger('auth', 'error')) as Redis;
  redis.options.commandTimeout = 10_000;
  await until('Redis is connected', () => redis.status === 'ready');
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

async function inRedis(): Promise<Scene> {
  await redis.flushall();
  return {
    counts: createRedisCounts(redis, backoff),
    async pass(units) {
      for (const key of await redis.keys('*')) {
        const left = await redis.pttl(key);
        const names = await redis.hkeys(key);
        for (const name of names.filter((name) => name !== 'failures'))
          await redis.hincrby(key, name, -units * unit);
        await redis.pexpire(key, left - units * unit);
      }
    },
  };
}

describe.each([
  ['in memory', inMemory],
  ['in Redis', inRedis],
])('%s', (_, open) => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await open();
  });
  const subject = { key: 'a', limit: 3 };

  /** Units to wait before the next try, 0 when it was let through. */
  async function fail(...subjects: { key: string; limit: number }[]): Promise<number> {
    const { waitMs } = await scene.counts.reserve(subjects.length ? subjects : [subject]);
    return Math.ceil(waitMs / unit);
  }
  async function failTimes(times: number): Promise<void> {
    for (let n = 0; n < times; n += 1) expect(await fail()).toBe(0);
  }

  test('at the limit the waits begin, each twice as long as the one before, up to the longest', async () => {
    await failTimes(3);
    for (const wait of [1, 2, 4, 8, 8]) {
      expect(await fail()).toBe(wait);
      await scene.pass(wait - 0.5);
      expect(await fail()).toBe(1);
      await scene.pass(0.5);
      expect(await fail()).toBe(0);
    }
  });

  test('who asks again while waiting waits no longer', async () => {
    await failTimes(3);
    for (let n = 0; n < 10; n += 1) expect(await fail()).toBe(1);
    await scene.pass(1);
    expect(await fail()).toBe(0);
    expect(await fail()).toBe(2);
  });

  test('below the limit a count is forgotten when its window is over', async () => {
    await failTimes(1);
    await scene.pass(19);
    await failTimes(1);
    await scene.pass(1);
    await failTimes(3);
    expect(await fail()).toBe(1);
  });

  test('from the limit on it is forgotten a window after the wait, not earlier', async () => {
    await failTimes(3);
    await scene.pass(20.5);
    await failTimes(1);
    expect(await fail()).toBe(2);
    await scene.pass(22);
    await failTimes(3);
    expect(await fail()).toBe(1);
  });

  test('of many that come together no more than the limit are let through', async () => {
    await failTimes(1);
    const waits = await Promise.all(Array.from({ length: 50 }, () => fail()));
    expect(waits.filter((wait) => wait === 0)).toHaveLength(2);
  });

  test('when one subject has to wait, none is counted', async () => {
    const other = { key: 'b', limit: 1 };
    await fail(other);
    for (let n = 0; n < 5; n += 1) expect(await fail(subject, other)).toBe(1);
    await failTimes(3);
    expect(await fail()).toBe(1);
  });

  test('the longer wait is told', async () => {
    const other = { key: 'b', limit: 2 };
    await fail(subject, other);
    await fail(subject, other);
    await scene.pass(1);
    await fail(subject, other);
    expect(await fail(subject, other)).toBe(2);
    expect(await fail(subject)).toBe(1);
  });

  test('what is given back leaves no trace, below the limit, at it and above', async () => {
    for (const wait of [0, 0, 1, 2, 4]) {
      for (let n = 0; n < 5; n += 1) {
        const { waitMs, giveBack } = await scene.counts.reserve([subject]);
        expect(waitMs).toBe(0);
        await giveBack();
      }
      await failTimes(1);
      if (wait > 0) expect(await fail()).toBe(wait);
      await scene.pass(wait);
    }
  });

  test('giving back keeps the window where it was', async () => {
    await failTimes(1);
    await scene.pass(15);
    await failTimes(1);
    const { giveBack } = await scene.counts.reserve([subject]);
    await giveBack();
    await scene.pass(5);
    await failTimes(3);
    expect(await fail()).toBe(1);
  });

  test('giving back ends no wait that another failure has begun', async () => {
    await failTimes(2);
    const slow = await scene.counts.reserve([subject]);
    await scene.pass(1);
    await failTimes(1);
    await slow.giveBack();
    expect(await fail()).toBe(2);
  });

  test('giving back what was forgotten meanwhile makes no room', async () => {
    const { giveBack } = await scene.counts.reserve([subject]);
    await scene.counts.forget(['a']);
    await giveBack();
    await failTimes(3);
    expect(await fail()).toBe(1);
  });

  test('a refusal has nothing to give back', async () => {
    await failTimes(3);
    const { giveBack } = await scene.counts.reserve([subject]);
    await giveBack();
    expect(await fail()).toBe(1);
  });

  test('forgotten keys begin anew, others stay', async () => {
    const other = { key: 'b', limit: 3 };
    for (let n = 0; n < 3; n += 1) await fail(subject, other);
    await scene.counts.forget(['a']);
    await failTimes(3);
    expect(await fail(other)).toBe(1);
  });

  /** The rules again, as a calculation over the times of all failures, in units. */
  function expectedWait(failures: number[], limit: number, at: number): number {
    const delay = (count: number) => (count < limit ? 0 : Math.min(2 ** (count - limit), 8));
    let run: number[] = [];
    const end = () => (run.length < limit ? run[0]! : run.at(-1)! + delay(run.length)) + 20;
    for (const time of failures) run = run.length > 0 && time < end() ? [...run, time] : [time];
    if (run.length === 0 || at >= end()) return 0;
    return Math.max(0, run.at(-1)! + delay(run.length) - at);
  }

  test('any sequence of right and wrong tries, and of time', async () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.constant('wrong' as const) },
      { weight: 1, arbitrary: fc.constant('right' as const) },
      { weight: 3, arbitrary: fc.integer({ min: 1, max: 9 }) },
      { weight: 1, arbitrary: fc.integer({ min: 15, max: 30 }) },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 1, max: 4 }),
        async (steps, limit) => {
          scene = await open();
          const failures: number[] = [];
          let time = 0;
          for (const step of steps) {
            if (typeof step === 'number') {
              await scene.pass(step);
              time += step;
              continue;
            }
            const wait = expectedWait(failures, limit, time);
            const { waitMs, giveBack } = await scene.counts.reserve([{ key: 'a', limit }]);
            expect(Math.ceil(waitMs / unit)).toBe(wait);
            if (wait > 0) continue;
            if (step === 'right') await giveBack();
            else failures.push(time);
          }
        },
      ),
      { numRuns: open === inMemory ? 1_000 : 40 },
    );
  });
});

test('in Redis nothing stays for longer than it counts', async () => {
  const { counts } = await inRedis();
  const subject = { key: 'a', limit: 2 };
  await counts.reserve([subject]);
  const ttl = () => redis.pttl('guesses:a');
  expect(Math.ceil((await ttl()) / unit)).toBe(20);
  await counts.reserve([subject]);
  expect(Math.ceil((await ttl()) / unit)).toBe(21);
});

test('in memory the number of keys is limited; those least recently counted for go', async () => {
  const { counts } = await inMemory();
  const many = Array.from({ length: 50_000 }, (_, n) => ({ key: String(n), limit: 1 }));
  await counts.reserve(many);
  await counts.reserve([{ key: 'one more', limit: 1 }]);
  const wait = async (key: string) => (await counts.reserve([{ key, limit: 1 }])).waitMs;
  expect(await wait('1')).toBe(unit);
  expect(await wait('0')).toBe(0);
});
