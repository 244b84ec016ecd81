import { beforeAll, expect, test } from '@jest/globals';
import type { Model } from '@content-platform/contract';
import type { TestService } from './testing/service.ts';
import { read, useTestStores } from './testing/test-stores.ts';

const world = useTestStores();
let open: TestService;
let restricted: TestService;
beforeAll(async () => {
  open = await world.service();
  restricted = await world.service({ env: { CONTENT_RESTRICTED_MODELS: 'accesscode, condition' } });
  for (const model of ['accesscode', 'webform'])
    await world.sql(`INSERT INTO content.record (model, id, title, body) VALUES ($1, 1, 'T', '{}')`, model);
});

const readAs = async (service: TestService, token: string, model: Model, id = 1) => {
  const { status, error, headers } = await read(service, model, id, 'full', token);
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
