import { expect, test } from '@jest/globals';
import { listContent } from '@content-platform/contract';
import { freshId, save } from '../../../test/support/records.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const manyIds = (count: number) => Array.from({ length: count }, (_, index) => index + 1).join();
const path = '/api/content/webform';
const invalid = {
  paths: ['/api/content/letter', '/api/content/Webform?ids=1'],
  queries: [
    'view=all',
    'limit=101',
    'ids=',
    'ids=a',
    'ids=1,,2',
    'ids=0',
    'ids=9007199254740992',
    `ids=${manyIds(101)}`,
  ].concat(['ids=1&limit=5', 'ids=1&cursor=e30', 'cursor=e30', 'cursor=12', `cursor=${'e'.repeat(5_000)}`]),
};

describeEndpoint(listContent, { path, as: 'user', invalid }, ({ ask, send }) => {
  const params = { model: 'pathway' };

  test('returns the records page by page in the order of their ids', async () => {
    const first = await ask({ params, query: { limit: 30 } });
    expect(first.body!.items.map(({ id }) => id)).toEqual(
      Array.from({ length: 30 }, (_, index) => index + 1),
    );
    expect(first.body!.items[0]).toMatchObject({ model: 'pathway', title: expect.any(String), body: {} });
    const next = await ask({
      params,
      query: { cursor: first.body!.next_cursor!, limit: 1, view: 'summary' },
    });
    expect(next.body!.items).toEqual([expect.not.objectContaining({ body: expect.anything() })]);
    expect(next.body!.items[0]).toMatchObject({ id: 31 });
    const elsewhere = await send({ path: `${path}?cursor=${first.body!.next_cursor}` });
    expect(elsewhere.error?.error).toBe('validation_failed');
  });

  test('returns the records of the ids in their order, and the missing ids', async () => {
    const [id, absent] = [freshId(), freshId()];
    await save('pathway', id, 'Newest');
    const query = { ids: [id, 2, absent, 1, 2].join() };
    const { body } = await ask({ params, query });
    expect(body!.items.map((item) => item.id)).toEqual([id, 2, 1]);
    expect(body).toMatchObject({ missing: [absent], next_cursor: null });
  });
});
