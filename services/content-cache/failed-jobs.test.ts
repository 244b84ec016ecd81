import { beforeEach, expect, jest, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import type { BodyInput } from '@content-platform/contract';
import { createLogger } from '@content-platform/chassis';
import { call } from '@content-platform/contract/client';
import { accepted } from '../../test/support/accounts.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { deleteFailedJobs, retryFailedJobs } from './endpoints/failed-jobs.ts';
import { createFailedJobStore } from './failed-job-store.ts';
import { useTestStores } from './testing/test-stores.ts';

const world = useTestStores();
const service = useStarted(() => world.service());
beforeEach(() => world.sql('TRUNCATE content.failed_job'));

interface Stored {
  class?: contract.FailedJobClass;
  model?: string | null;
  key?: Buffer | null;
  value?: Buffer | string | null;
  state?: string;
  attempts?: number;
  failedAt?: string;
}

let offset = 0;
/** Stores a job as the consumer does, and returns its id. */
async function store(job: Stored = {}): Promise<number> {
  const { class: name = 'unknown_model', model = null, key = null, state = 'open', attempts = 1 } = job;
  const { value = '{"model":"letter","id":1}', failedAt = '2998-01-01T00:00:00Z' } = job;
  const [row] = await world.sql<{ id: string }>(
    `INSERT INTO content.failed_job
       (class, error, topic, "partition", "offset", key, value, message_at, model, state, attempts, failed_at)
     VALUES ($1, 'as it was', 'events', 0, $2, $3, $4, 0, $5, $6, $7, $8) RETURNING id`,
    name,
    offset++,
    key,
    typeof value === 'string' ? Buffer.from(value) : value,
    model,
    state,
    attempts,
    failedAt,
  );
  return Number(row!.id);
}

const token = () => service.token('jobs:manage');
const list = async (query: Record<string, string | number> = {}) =>
  (await accepted(call(service.url, contract.listFailedJobs, { query, token: token() }))).body;
const ids = async (query: Record<string, string | number>) => (await list(query)).items.map(({ id }) => id);
const groups = async (query: Record<string, string> = {}) =>
  (await accepted(call(service.url, contract.listFailedJobClasses, { query, token: token() }))).body.items;
const find = (id: number) => call(service.url, contract.readFailedJob, { params: { id }, token: token() });
const retry = (id: number) => call(service.url, contract.retryFailedJob, { params: { id }, token: token() });
const retryAll = (body: BodyInput<typeof contract.retryFailedJobs>) =>
  call(service.url, contract.retryFailedJobs, { body, token: token() });
const removeAll = (body: BodyInput<typeof contract.deleteFailedJobs>) =>
  call(service.url, contract.deleteFailedJobs, { body, token: token() });
async function allIds() {
  const rows = await world.sql<{ id: string }>('SELECT id FROM content.failed_job ORDER BY id');
  return rows.map(({ id }) => Number(id));
}

const goodEvent = '{"model":"webform","id":1}';

test('ends a page with large values early', async () => {
  const stored = [];
  for (let count = 0; count < 6; count += 1)
    stored.push(await store({ value: Buffer.alloc(1_000_000, 'x') }));
  const first = await list();
  expect(first.items.map(({ id }) => id)).toEqual(stored.toReversed().slice(0, 2));
  expect(await ids({ cursor: first.next_cursor! })).toEqual(stored.toReversed().slice(2, 4));
});

test('filters jobs by class, model, state and time', async () => {
  const a = await store({ class: 'not_json', failedAt: '2026-01-01T00:00:00Z' });
  const b = await store({ class: 'invalid_event', model: 'webform', failedAt: '2026-01-02T00:00:00Z' });
  const c = await store({
    class: 'invalid_event',
    model: 'pathway',
    state: 'retried',
    failedAt: '2026-01-03T00:00:00Z',
  });
  expect(await ids({ class: 'not_json' })).toEqual([a]);
  expect(await ids({ class: 'invalid_event' })).toEqual([c, b]);
  expect(await ids({ model: 'webform' })).toEqual([b]);
  expect(await ids({ state: 'retried' })).toEqual([c]);
  expect(await ids({ state: 'open' })).toEqual([b, a]);
  expect(await ids({ since: '2026-01-02T00:00:00.000Z' })).toEqual([c, b]);
  expect(await ids({ class: 'invalid_event', state: 'open' })).toEqual([b]);
});

test('lists classes, most frequent first, each with its newest job', async () => {
  await store({ class: 'not_json', failedAt: '2026-01-02T00:00:00Z' });
  const newest = await store({ class: 'not_json', model: 'webform', failedAt: '2026-01-04T00:00:00Z' });
  const large = await store({ class: 'too_large', failedAt: '2026-01-03T00:00:00Z' });
  const retried = await store({ class: 'not_json', state: 'retried', failedAt: '2026-01-01T00:00:00Z' });
  expect(await groups()).toEqual([
    {
      class: 'not_json',
      count: 2,
      first_failed_at: '2026-01-02T00:00:00.000Z',
      last_failed_at: '2026-01-04T00:00:00.000Z',
      example: (await find(newest)).body,
    },
    {
      class: 'too_large',
      count: 1,
      first_failed_at: '2026-01-03T00:00:00.000Z',
      last_failed_at: '2026-01-03T00:00:00.000Z',
      example: (await find(large)).body,
    },
  ]);
  const examples = async (query: Record<string, string>) =>
    (await groups(query)).map(({ count, example }) => [count, example.id]);
  expect(await examples({ state: 'retried' })).toEqual([[1, retried]]);
  expect(await examples({ model: 'webform' })).toEqual([[1, newest]]);
  expect(await examples({ since: '2026-01-03T00:00:00Z' })).toEqual([
    [1, newest],
    [1, large],
  ]);
  expect(await groups({ model: 'pathway' })).toEqual([]);
});

test('counts classes with an index-only scan', async () => {
  await world.sql(
    `INSERT INTO content.failed_job (class, error, topic, "partition", "offset", value, message_at, model)
     SELECT (ARRAY['empty', 'not_json'])[1 + n % 2], repeat('e', 60), 'events', 1, n, repeat('v', 300)::bytea, 0, 'webform'
     FROM generate_series(1, 20000) AS n`,
  );
  const marked = `SELECT FROM pg_class WHERE relname = 'failed_job' AND relallvisible = relpages`;
  // While the service holds a snapshot from before the insert, VACUUM marks no page.
  await until('every page is marked as visible', async () => {
    await world.sql('VACUUM ANALYZE content.failed_job');
    return (await world.sql(marked)).length > 0;
  });
  const plans: string[] = [];
  const explain: typeof world.query = async (name, text, values) => {
    const { rows } = await world.query<{ 'QUERY PLAN': string }>(name, `EXPLAIN ${text}`, values);
    plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
    return world.query(name, text, values);
  };
  const { groups: count } = createFailedJobStore(explain);
  await count({ state: 'open' });
  await count({ state: 'retried', model: 'webform', since: '2026-01-01T00:00:00Z' });
  expect(plans).toHaveLength(2);
  for (const plan of plans) {
    expect(plan).toContain('Index Only Scan using failed_job_class');
    expect(plan).not.toContain('Seq Scan');
  }
});

const binary = Buffer.from([0xff, 0, 0xfe]);
const withNul = Buffer.from('a\0b');
const base64 = (value: Buffer) => value.toString('base64');
test.each<[string, Stored, object]>([
  [
    'text as text',
    { key: Buffer.from('webform:1'), value: 'é🎈' },
    { encoding: 'utf8', key: 'webform:1', value: 'é🎈' },
  ],
  ['null as null', { value: null }, { encoding: 'utf8', key: null, value: null }],
  ['other bytes as base64', { value: binary }, { encoding: 'base64', value: base64(binary) }],
  ['a NUL as base64', { value: withNul }, { encoding: 'base64', value: base64(withNul) }],
  [
    'both as base64 if one of them is not text',
    { key: binary, value: 'text' },
    { encoding: 'base64', key: base64(binary), value: base64(Buffer.from('text')) },
  ],
])('shows %s', async (_, job, shown) => {
  expect((await find(await store(job))).body).toMatchObject(shown);
});

test('retries lost events by clearing everything', async () => {
  const id = await store({ class: 'events_lost', value: null });
  expect(await retry(id)).toMatchObject({ status: 200, body: { state: 'retried' } });
  const targets = service.log.filter(({ source }) => source === 'retry').map(({ target }) => target);
  expect(targets).toEqual(expect.arrayContaining(['webform:*', 'pathway:*', 'accesscode:*', 'condition:*']));
  expect(await service.metric('invalidation_delay_seconds_count{source="retry"}')).toBeGreaterThan(0);
});

test('returns 503 and leaves the job unchanged while Redis is unreachable', async () => {
  const id = await store({ value: goodEvent });
  world.redis.pause();
  try {
    expect(await retry(id)).toMatchObject({ status: 503, error: { error: 'cache_unavailable' } });
    expect(await retryAll({})).toMatchObject({ status: 503, error: { error: 'cache_unavailable' } });
  } finally {
    world.redis.resume();
    await until('Redis is used again', () => service.check('redis'));
  }
  expect((await find(id)).body).toMatchObject({ state: 'open', attempts: 1 });
});

test('retries jobs by filter; a dry run only counts', async () => {
  const good = await store({ class: 'not_json', value: goodEvent });
  // PostgreSQL stores no NUL, which the error quotes.
  const bad = await store({ class: 'not_json', value: '\0' });
  const other = await store({ class: 'unknown_model' });
  const counted = { matched: 2, retried: 0, failed: 0 };
  expect((await retryAll({ class: 'not_json', dry_run: true })).body).toEqual(counted);
  expect((await find(good)).body).toMatchObject({ state: 'open', attempts: 1 });
  expect((await retryAll({ class: 'not_json' })).body).toEqual({ matched: 2, retried: 1, failed: 1 });
  const states = await Promise.all([good, bad, other].map(async (id) => (await find(id)).body));
  expect(states).toMatchObject([
    { state: 'retried', attempts: 2 },
    { state: 'open', attempts: 2 },
    { state: 'open', attempts: 1 },
  ]);
});

test('retries the least retried jobs first, then the oldest', async () => {
  const tried = await store({ value: goodEvent, attempts: 2 });
  const [fresh, later] = [await store({ value: goodEvent }), await store({ value: goodEvent })];
  expect((await retryAll({})).body).toEqual({ matched: 3, retried: 3, failed: 0 });
  const rows = await world.sql<{ id: string }>(
    'SELECT id FROM content.failed_job ORDER BY xmin::text::bigint',
  );
  expect(rows.map(({ id }) => Number(id))).toEqual([fresh, later, tried]);
});

/** A call of a handler, as the service makes it. */
const callWith = <Body>(body: Body, signal = new AbortController().signal) => ({
  body,
  signal: () => signal,
  caller: { kind: 'machine', clientId: 'cms', scopes: new Set<never>() } as const,
  params: {},
  query: {},
  header: () => undefined,
  address: '',
});

test('waits between two jobs, and stops when the client disconnects', async () => {
  for (let count = 0; count < 3; count += 1) await store();
  const hangUp = new AbortController();
  // Without a wait all three would be tried before the client disconnects.
  const load = jest.fn(async () => void setImmediate(() => hangUp.abort()));
  const handler = retryFailedJobs({ jobs: { ...createFailedJobStore(world.query), load } } as never);
  await handler(callWith({ dry_run: false, per_second: 0.3 }, hangUp.signal));
  expect(load).toHaveBeenCalledTimes(1);
});

test('deletes jobs by filter, and logs the caller; a dry run only counts', async () => {
  const notJson = await store({ class: 'not_json' });
  const webform = await store({ class: 'invalid_event', model: 'webform' });
  const retried = await store({ class: 'invalid_event', model: 'pathway', state: 'retried' });
  const late = await store({ failedAt: '2998-02-01T00:00:00Z' });
  expect((await removeAll({ state: 'open', dry_run: true })).body).toEqual({ matched: 3, deleted: 0 });
  expect(await allIds()).toEqual([notJson, webform, retried, late]);
  const filter = { class: 'invalid_event', model: 'webform', state: 'open' } as const;
  expect((await removeAll(filter)).body).toEqual({ matched: 1, deleted: 1 });
  expect(await allIds()).toEqual([notJson, retried, late]);
  expect((await removeAll({ since: '2998-02-01T00:00:00Z' })).body).toEqual({ matched: 1, deleted: 1 });
  expect((await removeAll({ class: 'too_large' })).body).toEqual({ matched: 0, deleted: 0 });
  expect((await removeAll({ state: 'retried' })).body).toEqual({ matched: 1, deleted: 1 });
  expect(await allIds()).toEqual([notJson]);
  const lines = service.log.filter(({ message }) => message === 'failed jobs were deleted');
  expect(lines[0]).toMatchObject({ requested_by: 'cms', filter, matched: 1, deleted: 1, audited: false });
  expect(lines).toHaveLength(3);
});

test('deletes thousands of jobs in one call', async () => {
  await world.sql(`INSERT INTO content.failed_job (class, error, topic, "partition", "offset", message_at)
    SELECT 'empty', '', 'events', 1, n, 0 FROM generate_series(1, 2500) AS n`);
  expect((await removeAll({ class: 'empty' })).body).toEqual({ matched: 2_500, deleted: 2_500 });
  expect(await allIds()).toEqual([]);
});

test('keeps jobs that arrive during a deletion', async () => {
  for (let count = 0; count < 2; count += 1) await store();
  const jobs = createFailedJobStore(world.query);
  let late: number | undefined;
  const hangUp = new AbortController();
  const meanwhile = {
    ...jobs,
    async removeMatching(...values: Parameters<typeof jobs.removeMatching>) {
      late ??= await store();
      return jobs.removeMatching(...values).finally(() => hangUp.abort());
    },
  };
  const logger = createLogger('content-cache', 'silent');
  const addToAudit = jest.fn(() => Promise.resolve(false));
  await deleteFailedJobs({ jobs: meanwhile, addToAudit, logger })(
    callWith({ state: 'open', dry_run: false } as const, hangUp.signal),
  );
  expect(addToAudit).toHaveBeenCalledTimes(1);
  expect(await allIds()).toEqual([late]);
});

test('deletes jobs 30 days after their retry, and keeps open jobs', async () => {
  const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  await store({ state: 'retried', failedAt: daysAgo(31) });
  const open = await store({ failedAt: daysAgo(31) });
  const retriedToday = await store({ value: goodEvent, failedAt: daysAgo(31) });
  expect((await retry(retriedToday)).status).toBe(200);
  const recent = await store({ state: 'retried', failedAt: daysAgo(29) });
  await world.runRetention();
  expect(await allIds()).toEqual([open, retriedToday, recent]);
});
