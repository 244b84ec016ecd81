import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { listLetters, type Model } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { ROOT } from '../../deploy/local/config.ts';
import { startAlertmanager } from '../support/alertmanager.ts';
import { tokenOf } from '../support/accounts.ts';
import { withRedis } from '../support/connections.ts';
import { announce } from '../support/events.ts';
import { joinAsIdleMember } from '../support/idle-group-member.ts';
import { holdOpen } from '../support/locks.ts';
import { startOwnStack } from '../support/own-stack.ts';
import { read } from '../support/platform.ts';
import { startPrometheus } from '../support/prometheus.ts';
import { database, freshId, save } from '../support/records.ts';
import { isStackReady, stack } from '../support/stack.ts';
import { startTraffic, type Traffic } from '../support/traffic.ts';
import { useStarted } from '../support/use-started.ts';
import { until } from '../support/wait.ts';
import { startWebhook } from '../support/webhook.ts';

/**
 * Causes faults one after the other under steady traffic. Expects a notification for each and no other. Uses the
 * project's rules and configuration with shorter times.
 */
let traffic: Traffic;
const model: Model = 'webform';
const seconds: string[] = [];

afterAll(() => traffic?.stop());
const own = useStarted(startOwnStack, 300_000);
const webhook = useStarted(startWebhook);
const alertmanager = useStarted(() => startAlertmanager({ webhook: webhook.url }), 300_000);
const prometheus = useStarted(() => startPrometheus(alertmanager.address), 300_000);
beforeAll(async () => {
  const id = freshId();
  await save(model, id, 'Read again and again');
  traffic = startTraffic(20, () => read(model, id));
  await until('every process is scraped', async () => {
    const [sample] = await prometheus.query('sum(up{job="content-platform"})');
    return Number(sample?.value[1]) === Object.keys(stack().services).length;
  });
});
beforeEach(() => webhook.reset());

/** Waits for these notifications and expects no other. `since`: start of the fault, by performance.now(). */
async function expectAlerts(since: number, ...names: string[]): Promise<void> {
  for (const name of names) {
    await until(`${name} was sent`, () => name in webhook.notified(), 90_000);
    const passed = ((performance.now() - since) / 1_000).toFixed(1);
    seconds.push(`${expect.getState().currentTestName}: ${name} ${passed}`);
  }
  expect(Object.keys(webhook.notified()).toSorted()).toEqual(names.toSorted());
}

/** Suspends a process until the alert was sent. */
async function suspend(name: string, alert: string): Promise<void> {
  const since = performance.now();
  process.kill(own.pidOf(name), 'SIGSTOP');
  await expectAlerts(since, alert).finally(() => process.kill(own.pidOf(name), 'SIGCONT'));
}

type Query = (text: string) => Promise<unknown>;

async function transaction(work: (query: Query) => Promise<void>): Promise<void> {
  const client = await database().connect();
  try {
    await client.query('BEGIN');
    await work((text) => client.query(text));
    await client.query('COMMIT');
  } finally {
    client.release();
  }
}

test('normal traffic fires no alert', async () => {
  await until('the traffic is judged', async () => {
    const [sample] = await prometheus.query('cache:cache_reads:hit_ratio_10m');
    return Number(sample?.value[1]) > 0.9;
  });
  expect(webhook.notified()).toEqual({});
});

test('notifies about an event that cannot be processed', async () => {
  const since = performance.now();
  await announce('not json');
  await expectAlerts(since, 'FailedJobs');
  expect(webhook.notified()['FailedJobs']).toBe('1 failed jobs are open; retry or delete each of them');
  await database().query('DELETE FROM content.failed_job');
});

test('notifies about slow queries', async () => {
  const token = await tokenOf(stack().gateway, 'user');
  const since = performance.now();
  const unlock = await holdOpen({ transaction }, (query: Query) =>
    query('LOCK TABLE letters.letter IN ACCESS EXCLUSIVE MODE'),
  );
  try {
    // Together with the traffic, these are less than a twentieth of all requests, in case they are also slow.
    const asked = Array.from({ length: 7 }, () => call(stack().gateway, listLetters, { token }));
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    await until('they wait', async () => (await database().query(waiting)).rowCount === asked.length);
    // The duration from which a query counts as slow.
    await sleep(250);
    await unlock();
    for (const { status } of await Promise.all(asked)) expect(status).toBe(200);
  } finally {
    await unlock();
  }
  await expectAlerts(since, 'SlowQueries');
  expect(webhook.notified()['SlowQueries']).toMatch(/^letters made \d+(\.\d+)? queries over 200ms/);
});

test('notifies about a slow route with few of all requests', async () => {
  await until('the slow queries are over', () => !webhook.firing().includes('SlowQueries'), 90_000);
  webhook.reset();
  const token = await tokenOf(stack().gateway, 'user');
  const since = performance.now();
  const faults = [
    startTraffic(20, () => read(model, 1)),
    startTraffic(0.9, () => call(stack().gateway, listLetters, { token })),
    startTraffic(0.5, () =>
      transaction(async (query) => {
        await query('LOCK TABLE letters.letter IN ACCESS EXCLUSIVE MODE');
        await query('SELECT pg_sleep(1.8)');
      }),
    ),
  ];
  await expectAlerts(since, 'RouteLatencyP95High', 'SlowQueries').finally(() =>
    Promise.all(faults.map((fault) => fault.stop())),
  );
  expect(webhook.notified()['RouteLatencyP95High']).toMatch(
    /^The 95th percentile of GET \/api\/letters is \S+; the limit is 500ms$/,
  );
});

test('notifies about a full Redis', async () => {
  await withRedis(async (redis) => {
    const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
    // Redis can evict so much that it never refuses the platform's writes.
    let filled = 0;
    const fill = () => redis.set(`proof:${(filled += 1)}`, Buffer.alloc(10_000), 'EX', 300);
    for (let count = 0; count < 1_000; count += 1) await fill();
    const since = performance.now();
    await redis.config('SET', 'maxmemory', used + 10_000_000);
    const pressure = startTraffic(20, fill);
    await expectAlerts(since, 'CacheEvictions', 'CacheMemoryHigh').finally(async () => {
      await pressure.stop();
      await redis.config('SET', 'maxmemory', '256mb');
    });
    expect(webhook.notified()['CacheEvictions']).toMatch(/^Redis is full and evicted \d+ keys/);
  });
});

test('notifies about an unannounced change while most reads miss', async () => {
  const id = freshId();
  await save(model, id, 'Old');
  await until('it is cached', async () => (await read(model, id)).cache === 'hit');
  const since = performance.now();
  await save(model, id, 'New');
  const misses = startTraffic(40, () => read('pathway', freshId()));
  await expectAlerts(since, 'CacheHitRatioLow', 'InvalidationsMissed').finally(() => misses.stop());
  await until('the new one is read', async () => (await read(model, id)).title === 'New');
});

describe('the consumer is stalled', () => {
  test('notifies when an unknown member of the group takes events without processing them', async () => {
    const leave = await joinAsIdleMember();
    const since = performance.now();
    // Enough events for both members.
    for (let count = 0; count < 24; count += 1) {
      const id = freshId();
      await announce(JSON.stringify({ model, id }), `${model}:${id}`);
    }
    await expectAlerts(since, 'InvalidationConsumerStalled');
    await leave();
    expect(webhook.notified()['InvalidationConsumerStalled']).toMatch(
      /^\d+ Kafka events wait and none was processed/,
    );
  });

  test('notifies when Kafka hangs', async () => {
    await until('every service is ready', isStackReady);
    await until('that is over', () => !webhook.firing().includes('InvalidationConsumerStalled'));
    await suspend('kafka', 'InvalidationConsumerStalled');
    expect(webhook.notified()['InvalidationConsumerStalled']).toMatch(/^Kafka has not answered for \d+/);
  });
});

test('notifies when a service is stopped', async () => {
  await suspend('content-cache', 'ServiceDown');
  expect(webhook.notified()['ServiceDown']).toBe('content-cache is down: 0 of its processes answer');
});

test('every alert ends, and after-effects of the faults cause no notification', async () => {
  await until('all is over', () => webhook.firing().length === 0, 90_000);
  expect(webhook.notified()).toEqual({});
  console.log(`Seconds from fault to alert, in quicker time\n${seconds.join('\n')}`);
});

test("the runbooks' queries are valid and use existing metrics", async () => {
  const text = readFileSync(join(ROOT, 'docs', 'operations', 'runbooks.md'), 'utf8');
  const codes = [...text.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!);
  const metric = /\b(?:\w+:\w+:\w+|[a-z]+_\w+_(?:total|bytes|count|sum|bucket|seconds)|failed_jobs_open)\b/g;
  const queries = codes.filter((code) => code.match(metric));
  expect(queries.length).toBeGreaterThan(30);
  for (const query of queries) {
    await prometheus.query(query);
    for (const name of query.match(metric)!)
      await until(`there is ${name}`, async () => (await prometheus.query(name)).length > 0);
  }
});
