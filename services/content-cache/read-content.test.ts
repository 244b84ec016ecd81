import { expect, jest, test } from '@jest/globals';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { startProxy } from '../../test/support/proxy.ts';
import { listChanges, listContent } from './endpoints/content.ts';
import { read, useTestStores } from './testing/test-stores.ts';

const world = useTestStores();
const service = useStarted(() => world.service());
/** To the database. */
const proxy = useStarted(() => startProxy(new URL(world.databaseUrl)));

const body = { fields: [{ name: 'a "quoted" é 🎈' }], big: 1e300, empty: [] };
let nextId = 1;
async function insert(id = nextId++): Promise<number> {
  const text = `INSERT INTO content.record VALUES ('webform', $1, 'A form', $2)`;
  await world.sql(text, id, JSON.stringify(body));
  return id;
}

test('accepts any JSON value as body', async () => {
  for (const value of ['null', '"text"', '[1,2]', '0', 'true']) {
    const id = nextId++;
    await world.sql(`INSERT INTO content.record VALUES ('webform', $1, '', $2)`, id, value);
    expect((await read(service, 'webform', id)).body).toMatchObject({ body: JSON.parse(value), title: '' });
  }
});

test('gives a recreated record another ETag even if its version is the same', async () => {
  const id = await insert();
  const before = await read(service, 'webform', id);
  await world.sql('DELETE FROM content.record WHERE id = $1', id);
  await world.sql('DELETE FROM content.tombstone WHERE id = $1', id);
  await insert(id);
  await world.redis.admin.flushall();
  const after = await read(service, 'webform', id);
  expect(after.body).toMatchObject({ version: 1 });
  expect(after.etag).not.toBe(before.etag);
});

test('returns 503 for a large list while clients leave earlier ones unread; serves other requests', async () => {
  await world.sql(
    `INSERT INTO content.record (model, id, title, body)
     SELECT 'pathway', n, '', to_jsonb(repeat('x', 200000)) FROM generate_series(1, 100) AS n`,
  );
  const list = (user = 7) =>
    fetch(`${service.url}/api/content/pathway?limit=100`, {
      headers: { authorization: `Bearer ${service.tokenOf(user)}` },
    });
  const replies = [await list(), await list(), await list(8)];
  expect(replies.map(({ status }) => status)).toEqual([200, 503, 200]);
  for (let user = 9; replies.at(-1)!.status === 200 && user < 20; user += 1) replies.push(await list(user));
  expect(replies.at(-1)).toMatchObject({ status: 503 });
  expect(replies.at(-1)!.headers.get('retry-after')).toBe('1');
  expect((await read(service, 'pathway', 1)).status).toBe(200);
  for (const { body: unread } of replies) await unread!.cancel();
  await until('a list is sent again', async () => (await (await list()).text()).length > 20e6);
});

test('ends a page before it is too large, and refuses ids of records that are too large for one reply', async () => {
  await world.sql(
    `INSERT INTO content.record (model, id, title, body)
     SELECT 'condition', n, '', to_jsonb(repeat('x', 10000000)) FROM generate_series(1, 4) AS n`,
  );
  const list = async (query: string) => {
    const headers = { authorization: `Bearer ${service.tokenOf(7)}` };
    const reply = await until('earlier lists are sent', async () => {
      const answer = await fetch(`${service.url}/api/content/condition?${query}`, { headers });
      return answer.status !== 503 && answer;
    });
    const { items, next_cursor, details } = (await reply.json()) as Record<string, any>;
    return { ids: items?.map(({ id }: { id: number }) => id), next_cursor, details };
  };
  const first = await list('limit=4');
  expect(first.ids).toEqual([1, 2, 3]);
  expect(await list(`cursor=${first.next_cursor}`)).toMatchObject({ ids: [4], next_cursor: null });
  expect((await list('limit=4&view=summary')).ids).toEqual([1, 2, 3, 4]);
  expect(await list('ids=4,3,2,1')).toMatchObject({ details: [{ path: 'query.ids' }] });
  expect(await world.redis.admin.hget('condition:4', 'full:lease')).toBeNull();
  expect((await list('ids=4,3,2')).ids).toEqual([4, 3, 2]);
});

test('does not count a list whose client disconnected before its reply', async () => {
  let client = new AbortController();
  const list = () => Promise.resolve([{ payload: 'x'.repeat(20e6) }]).finally(() => client.abort());
  const handler = listContent({ restricted: [], unlisted: [], records: { list } } as never);
  const caller = { kind: 'user', id: 7, scopes: new Set() };
  for (let lists = 0; lists < 4; lists += 1, client = new AbortController()) {
    const request = { params: { model: 'pathway' }, query: {}, caller, signal: () => client.signal };
    expect(await handler(request as never)).toMatchObject({ status: 200 });
  }
});

test('reads the changes for one request of a caller at a time', async () => {
  const { promise, reject } = Promise.withResolvers<never>();
  const read = jest.fn(() => promise);
  const handler = listChanges({ restricted: [], unlisted: [], feed: { read } } as never);
  const { signal } = new AbortController();
  const request = (id: number) => ({ query: {}, caller: { kind: 'user', id }, signal: () => signal });
  const replies = [7, 7, 8].map(async (user) => handler(request(user) as never));
  await new Promise(setImmediate);
  expect(read).toHaveBeenCalledTimes(2);
  reject(new Error('ended'));
  await Promise.allSettled(replies);
  expect(read).toHaveBeenCalledTimes(3);
});

test('accepts the highest id', async () => {
  const id = Number.MAX_SAFE_INTEGER;
  await world.sql(`INSERT INTO content.record VALUES ('webform', $1, 'Last', '{}')`, id);
  expect((await read(service, 'webform', id)).body).toMatchObject({ id });
});

test('serves reads from the database while Redis hangs or is down', async () => {
  const id = await insert();
  await read(service, 'webform', id);
  world.redis.pause();
  const hanging = await read(service, 'webform', id);
  expect([hanging.status, hanging.cache]).toEqual([200, 'bypass']);
  world.redis.resume();
  await world.redis.kill();
  expect((await read(service, 'webform', id)).cache).toBe('bypass');
  expect(await service.check('redis')).toBe(false);
  await world.redis.restart();
});

test('serves hits while PostgreSQL is unreachable, returns 503 for misses, and recovers', async () => {
  const through = await world.service({ databaseUrl: proxy.url });
  const [cachedId, otherId] = [await insert(), await insert()];
  // A process that has just connected to Redis may bypass the cache at first.
  await until('it is cached', async () => (await read(through, 'webform', cachedId)).cache === 'hit');
  proxy.cut();
  expect((await read(through, 'webform', cachedId)).cache).toBe('hit');
  expect(await read(through, 'webform', otherId)).toMatchObject({
    status: 503,
    error: { error: 'service_unavailable' },
  });
  expect(await through.check('postgres')).toBe(false);
  await proxy.repair();
  await until('misses succeed again', async () => (await read(through, 'webform', otherId)).status === 200);
  await through.stop();
});

test('serves hits while PostgreSQL hangs, and lets few misses wait for it', async () => {
  const through = await world.service({ databaseUrl: proxy.url });
  const [cachedId, otherId] = [await insert(), await insert()];
  await until('it is cached', async () => (await read(through, 'webform', cachedId)).cache === 'hit');
  const reader = 'db_query_duration_seconds_count{service="content-cache",operation="read_record"}';

  proxy.limitReplies(0);
  // This read waits until its timeout.
  expect((await read(through, 'webform', otherId)).status).toBe(503);
  const before = await through.metric(reader);
  const refused = await Promise.all(Array.from({ length: 50 }, () => read(through, 'pathway', nextId++)));
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]));
  expect((await through.metric(reader)) - before).toBeLessThan(10);
  expect((await read(through, 'webform', cachedId)).cache).toBe('hit');

  proxy.limitReplies(Infinity);
  await until('misses succeed again', async () => (await read(through, 'webform', otherId)).status === 200);
  await through.stop();
});
