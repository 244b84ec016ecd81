import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import pg from 'pg';
import { clearModel, clearPattern, listInvalidations, type Model } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { tokenOf } from '../../../test/support/accounts.ts';
import { announce, closeEvents } from '../../../test/support/events.ts';
import { clear, read } from '../../../test/support/platform.ts';
import { database, freshId, save } from '../../../test/support/records.ts';
import { stack } from '../../../test/support/stack.ts';
import { until } from '../../../test/support/wait.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const model = 'accesscode';
const thousand = Array.from({ length: 1_000 }, (_, index) => index + 1);
const noLists = [12, '12', null, {}];
const badLists = [[], [0], [1.5], ['12'], [2 ** 53], [[12]], [null], thousand.concat(1_001)];
let redis: Redis;
beforeAll(() => void (redis = new Redis(stack().redis)));
afterAll(async () => {
  redis.disconnect();
  await closeEvents();
});

async function saveAndCache(id: number, of: Model = model): Promise<void> {
  await save(of, id, 'Old');
  await until('it is cached', async () => (await read(of, id)).cache === 'hit');
}

const clearModelExample = {
  as: 'machine',
  body: { model, id: 12 },
  invalid: {
    fields: {
      model: ['letter', undefined, `${model}\0`, [model]],
      id: [0, 1.5, '12', 2 ** 53, undefined],
      view: ['full'],
      ids: [[12]],
    },
    bodies: [...noLists, ...badLists].map((ids) => ({ model, ids })),
  },
} as const;
describeEndpoint(clearModel, clearModelExample, ({ ask, send }) => {
  // The lock of changes/follower.ts: otherwise the platform itself clears a change after a second.
  const watch = new pg.Client(stack().postgres);
  beforeAll(() => watch.connect().then(() => watch.query('SELECT pg_advisory_lock(2026112101)')));
  afterAll(() => watch.end());
  test('returns the new version on the next read and reports the number of deleted keys', async () => {
    const id = freshId();
    await saveAndCache(id);
    await save(model, id, 'New');
    expect(await read(model, id)).toMatchObject({ cache: 'hit', title: 'Old' });
    expect(await ask({ body: { model, id } })).toMatchObject({
      status: 200,
      body: { success: true, keys_deleted: 1 },
    });
    expect(await read(model, id)).toMatchObject({ cache: 'miss', title: 'New' });
    expect(await ask({ body: { model, id: freshId() } })).toMatchObject({
      body: { success: true, keys_deleted: 0 },
    });
  });

  test('clears all `ids` of a call, and each duplicate once', async () => {
    const ids = [freshId(), freshId(), freshId()];
    for (const id of ids) await saveAndCache(id);
    await redis.set(`${model}:${ids[2]}:json`, 'x');
    for (const id of ids) await save(model, id, 'New');
    expect(await ask({ body: { model, ids: [...ids, freshId(), ...ids] } })).toMatchObject({
      status: 200,
      body: { success: true, keys_deleted: 4 },
    });
    for (const id of ids) expect(await read(model, id)).toMatchObject({ cache: 'miss', title: 'New' });
    const targets = ids.map((id) => `${model}:${id}`);
    const rows = await until('the clears are on record', async () => {
      const { rows } = await database().query<{ target: string; keys_deleted: string }>(
        'SELECT target, keys_deleted FROM content.invalidation WHERE target = ANY ($1)',
        [targets],
      );
      return rows.length >= targets.length ? rows : undefined;
    });
    expect(new Map(rows.map((row) => [row.target, row.keys_deleted]))).toEqual(
      new Map(targets.map((target, index) => [target, index === 2 ? '2' : '1'])),
    );
    expect(rows).toHaveLength(3);
  });

  test('accepts 1,000 ids of the greatest length', async () => {
    const ids = thousand.map((number) => Number.MAX_SAFE_INTEGER - number);
    expect(await ask({ body: { model, ids } })).toMatchObject({ status: 200, body: { keys_deleted: 0 } });
  });

  test('clears no record of an invalid list', async () => {
    const id = freshId();
    await saveAndCache(id);
    const other = Array.from({ length: 1_000 }, freshId);
    for (const wrong of [
      { ids: [id, 0] },
      { ids: [id, String(id)] },
      { ids: [id, ...other] },
      { id, ids: [id] },
    ])
      expect((await send({ body: JSON.stringify({ model, ...wrong }) })).error?.code).toBe(422);
    expect(await read(model, id)).toMatchObject({ cache: 'hit' });
  });

  test('allows an admin; refuses a regular user and deletes nothing', async () => {
    const id = freshId();
    await saveAndCache(id);
    expect(await ask({ body: { model, id }, as: 'user' })).toMatchObject({ status: 403 });
    expect(await ask({ body: { model, id }, as: 'sre' })).toMatchObject({ status: 403 });
    expect(await read(model, id)).toMatchObject({ cache: 'hit' });
    expect(await ask({ body: { model, id }, as: 'admin' })).toMatchObject({ body: { keys_deleted: 1 } });
  });
});

const clearPatternExample = {
  as: 'machine',
  body: { pattern: 'condition:*' },
  invalid: {
    fields: {
      pattern: [
        '*',
        '',
        'web*:*',
        'webform:1*',
        'webform:**',
        'letter:*',
        'webform:*\n',
        'webform:*,pathway:*',
      ],
    },
  },
} as const;
describeEndpoint(clearPattern, clearPatternExample, ({ ask }) => {
  test('clears every record of the model and no other model', async () => {
    const ids = [freshId(), freshId(), freshId()];
    for (const id of ids) await saveAndCache(id, 'condition');
    const other = freshId();
    await saveAndCache(other);
    await redis.set(`condition:${ids[0]}:json`, 'x');
    const answer = await ask({ body: { pattern: 'condition:*' } });
    expect(answer.body?.keys_deleted).toBeGreaterThanOrEqual(4);
    for (const id of ids) expect(await read('condition', id)).toMatchObject({ cache: 'miss' });
    expect(await redis.exists(`condition:${ids[0]}:json`)).toBe(0);
    expect(await read(model, other)).toMatchObject({ cache: 'hit' });
  });
});

const listInvalidationsExample = {
  as: 'machine',
  invalid: {
    queries: [
      'id=12',
      'model=webform&id=0',
      'model=webform&id=*',
      'model=letter',
      'since=yesterday',
      'since=0',
    ],
  },
} as const;
describeEndpoint(listInvalidations, listInvalidationsExample, ({ ask }) => {
  test('lists the clears of a record and of its model, newest first, with source and caller', async () => {
    const id = freshId();
    await saveAndCache(id, 'pathway');
    await clear('pathway', id);
    const { partition, offset } = await announce(JSON.stringify({ model: 'pathway', id }));
    await until('the event is listed', async () => {
      const { body } = await ask({ query: { model: 'pathway', id } });
      return body!.items.some(({ source }) => source === 'kafka');
    });
    const token = await tokenOf(stack().gateway, 'admin');
    await call(stack().gateway, clearPattern, { body: { pattern: 'pathway:*' }, token });
    await clear('pathway', id + 1);
    const items = await until('all are listed', async () => {
      const { body } = await ask({ query: { model: 'pathway', id } });
      return body!.items.some(({ target }) => target === 'pathway:*') ? body!.items : undefined;
    });
    const common = { id: expect.any(Number), at: expect.any(String) };
    const event = { requested_by: `cache-invalidation/${partition}/${offset}`, source: 'kafka' };
    expect(items.filter(({ target }) => target !== 'pathway:*')).toEqual([
      { ...common, ...event, target: `pathway:${id}`, keys_deleted: 0 },
      { ...common, source: 'http', requested_by: 'content-server', target: `pathway:${id}`, keys_deleted: 1 },
    ]);
    expect(items[0]).toMatchObject({ source: 'http', requested_by: expect.stringMatching(/^user:[0-9]+$/) });
    const times = items.map(({ at }) => at);
    expect(times).toEqual(times.toSorted().toReversed());
  });

  test('lists a row for each of `ids` in pages, and filters by model and time', async () => {
    const ids = [freshId(), freshId(), freshId()];
    const since = new Date().toISOString();
    const token = await tokenOf(stack().gateway, 'machine');
    await call(stack().gateway, clearModel, { body: { model, ids }, token });
    const found: string[] = [];
    await until('all are listed', async () => {
      found.length = 0;
      for (let cursor: string | null = ''; cursor !== null;) {
        const query = { model, since, limit: 1, ...(cursor && { cursor }) };
        const { body }: Awaited<ReturnType<typeof ask>> = await ask({ query, as: 'sre' });
        found.push(...body!.items.map(({ target }) => target));
        cursor = body!.next_cursor;
      }
      return ids.every((id) => found.filter((target) => target === `${model}:${id}`).length === 1);
    });
    expect(found.filter((target) => !target.startsWith(`${model}:`))).toEqual([]);
    const later = { model, since: '2999-01-01T00:00:00Z' } as const;
    expect((await ask({ query: later })).body).toEqual({ items: [], next_cursor: null });
    expect(
      (await ask({ query: { model: 'webform', id: ids[0]! } })).body!.items.map(({ target }) => target),
    ).not.toContain(`${model}:${ids[0]}`);
  });

  test('allows the scopes cache:clear and jobs:manage', async () => {
    for (const as of ['machine', 'sre', 'admin'] as const) expect((await ask({ as })).status).toBe(200);
  });
});
