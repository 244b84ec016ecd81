import { beforeAll, expect, test } from '@jest/globals';
import { models, readContent } from '@content-platform/contract';
import { clientToken } from '../../../test/support/admin.ts';
import { freshId, save } from '../../../test/support/records.ts';
import { until } from '../../../test/support/wait.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const model = 'webform';
const id = freshId();
beforeAll(() => save(model, id, 'First'));

const invalid = {
  paths: ['letter', 'Webform', '__proto__'].map((wrong) => `/api/content/${wrong}/12`),
  queries: ['view=everything', 'view=full&view=summary', 'view[]=full', 'view='],
};
const example = { path: `/api/content/${model}/${id}`, as: 'user', invalid } as const;

describeEndpoint(readContent, example, ({ ask }) => {
  const params = { model, id };

  test('returns the record from the database first, then from the cache', async () => {
    const id = freshId();
    await save('pathway', id, 'Any JSON', [1, { 'key ☃': null }]);
    const miss = await ask({ params: { model: 'pathway', id } });
    expect(miss).toMatchObject({
      status: 200,
      body: { model: 'pathway', id, title: 'Any JSON', body: [1, { 'key ☃': null }], version: 1 },
    });
    expect(miss.headers.get('x-cache')).toBe('miss');
    expect(miss.headers.get('cache-control')).toBe('private, no-cache');
    const hit = await until('it is cached', async () => {
      const answer = await ask({ params: { model: 'pathway', id } });
      return answer.headers.get('x-cache') === 'hit' && answer;
    });
    expect(hit.body).toEqual(miss.body);
    expect(hit.headers.get('etag')).toBe(miss.headers.get('etag'));
  });

  test('returns the summary without the body', async () => {
    const full = await ask({ params });
    const summary = await ask({ params, query: { view: 'summary' } });
    expect(full.body).toEqual({ ...summary.body, body: { title: 'First' } });
    expect(summary.body).not.toHaveProperty('body');
    expect(summary.headers.get('etag')).not.toBe(full.headers.get('etag'));
  });

  test('allows a machine client with the scope content:read', async () => {
    expect(await ask({ params, token: await clientToken('content:read') })).toMatchObject({ status: 200 });
  });

  test('returns 304 for the current ETag', async () => {
    const etag = (await ask({ params })).headers.get('etag')!;
    expect(etag).toMatch(/^"[^"]+"$/);
    for (const sent of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await ask({ params, headers: { 'If-None-Match': sent } });
      expect(answer.status).toBe(304);
      expect(answer.headers.get('etag')).toBe(etag);
    }
    expect(await ask({ params, headers: { 'If-None-Match': '"other"' } })).toMatchObject({ status: 200 });
  });

  test('returns 404 for an unknown record, from the database and from the cache', async () => {
    const params = { model, id: freshId() };
    expect(await ask({ params })).toMatchObject({ status: 404, error: { error: 'not_found' } });
    const again = () => ask({ params }).then((reply) => reply.headers.get('x-cache') === 'hit' && reply);
    expect(await until('the absence is cached', again)).toMatchObject({ status: 404 });
  });

  test.each(models)('the demo data has records 1 to 50 of %s', async (model) => {
    expect(await ask({ params: { model, id: 1 } })).toMatchObject({ status: 200 });
    expect(await ask({ params: { model, id: 50 } })).toMatchObject({ status: 200 });
  });
});
