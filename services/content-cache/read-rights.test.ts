import { beforeAll, expect, test } from '@jest/globals';
import { listChanges, listContent, type Model } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import type { TestService } from './testing/service.ts';
import { read, useTestStores } from './testing/test-stores.ts';

const world = useTestStores();
let open: TestService;
let restricted: TestService;
beforeAll(async () => {
  open = await world.service();
  restricted = await world.service({ env: { CONTENT_RESTRICTED_MODELS: 'accesscode, condition' } });
  for (const model of ['accesscode', 'condition', 'webform'])
    await world.sql(`INSERT INTO content.record (model, id, title, body) VALUES ($1, 1, 'T', '{}')`, model);
});

const readAs = async (service: TestService, token: string, model: Model, id = 1) => {
  const { status, error, headers } = await read(service, model, id, token);
  return [status, error?.error, headers.get('www-authenticate')];
};
const refusal = (scope: string) => [
  403,
  'insufficient_scope',
  `Bearer error="insufficient_scope", scope="${scope}"`,
];

test('a machine client reads content only with content:read', async () => {
  expect(await readAs(open, open.token('cache:clear'), 'webform')).toEqual(refusal('content:read'));
  expect(await readAs(open, open.token('content:restricted'), 'webform')).toEqual(refusal('content:read'));
  expect((await readAs(open, open.token('content:read'), 'webform'))[0]).toBe(200);
});

test('a restricted model is read only with content:restricted, whether a record is cached or not', async () => {
  const needed = refusal('content:restricted');
  const machine = restricted.token('content:read');
  expect(await readAs(restricted, restricted.userToken(), 'accesscode')).toEqual(needed);
  const allowed = [
    restricted.userToken('content:restricted'),
    restricted.token('content:read', 'content:restricted'),
  ];
  for (const token of allowed) expect((await readAs(restricted, token, 'accesscode'))[0]).toBe(200);
  expect(await readAs(restricted, machine, 'accesscode')).toEqual(needed);
  expect(await readAs(restricted, restricted.userToken(), 'accesscode', 2)).toEqual(needed);
  expect(await readAs(restricted, machine, 'condition')).toEqual(needed);
});

test('users read the other models without a scope', async () => {
  expect((await readAs(restricted, restricted.userToken(), 'webform'))[0]).toBe(200);
  expect((await readAs(open, open.userToken(), 'accesscode'))[0]).toBe(200);
});

const list = (token: string, model: Model, query: Record<string, string | number> = {}) =>
  call(restricted.url, listContent, { token, params: { model }, query });
const changes = async (token: string, query: Record<string, string | number> = {}) => {
  const reply = await call(restricted.url, listChanges, { token, query });
  return { ...reply, models: new Set(reply.body?.items.map(({ model }) => model)) };
};
const refused = { status: 403, error: { error: 'insufficient_scope' } };

test('pages, batches and changes leave out restricted models, and models that may not be listed', async () => {
  const user = restricted.userToken('content:list');
  for (const query of [{}, { ids: '1' }, { ids: '2' }, { limit: 1 }])
    expect(await list(user, 'condition', query)).toMatchObject(refused);
  expect(await changes(user, { models: 'condition' })).toMatchObject(refused);
  expect((await changes(user)).models).toEqual(new Set(['webform']));
  // Access codes need both scopes.
  const reader = restricted.userToken('content:restricted');
  for (const query of [{}, { ids: '1' }])
    expect(await list(reader, 'accesscode', query)).toMatchObject(refused);
  expect((await changes(reader)).models).toEqual(new Set(['condition', 'webform']));
  const all = restricted.userToken('content:list', 'content:restricted');
  expect((await list(all, 'accesscode', { ids: '1' })).status).toBe(200);
  expect((await changes(all)).models).toEqual(new Set(['accesscode', 'condition', 'webform']));
});

test("another caller's cursor gives no access to its models", async () => {
  const all = restricted.userToken('content:list', 'content:restricted');
  const user = restricted.userToken();
  await world.sql(`INSERT INTO content.condition (id, title, body) VALUES (2, 'T', '{}')`);
  const cursor = (await list(all, 'condition', { limit: 1 })).body!.next_cursor!;
  expect(await list(user, 'condition', { cursor })).toMatchObject(refused);
  expect(await list(user, 'webform', { cursor })).toMatchObject({ status: 422 });
  const first = await changes(all, { limit: 1 });
  const after = first.body!.next_cursor;
  expect(await changes(user, { after })).toMatchObject({ error: { error: 'cursor_expired' } });
  expect((await changes(all, { after })).models).toEqual(new Set(['condition', 'webform']));
  // It says nothing about the models that the user may not list.
  const narrow = (await changes(user)).body!.next_cursor;
  expect(await changes(all, { after: narrow })).toMatchObject({ error: { error: 'cursor_expired' } });
});
