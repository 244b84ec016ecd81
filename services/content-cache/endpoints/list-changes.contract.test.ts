import { expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { listChanges } from '@content-platform/contract';
import { freshId, remove, save } from '../../../test/support/records.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const queries = [
  'limit=0',
  'limit=1001',
  'models=',
  'models=letter',
  'models=webform,',
  'after=12',
  'after=e30',
  // PostgreSQL refuses this snapshot: its open transaction is not below the next one.
  `after=${Buffer.from(JSON.stringify({ epoch: randomUUID(), models: [], base: '5:7:7' })).toString('base64url')}`,
];
const example = { path: '/api/content/changes', as: 'user', invalid: { queries } } as const;

describeEndpoint(listChanges, example, ({ ask, send }) => {
  /** Reads pages until the reply is up to date. Returns the changes and the last cursor. */
  async function follow(query: Record<string, string | number>) {
    const items = [];
    let after: string | undefined;
    for (;;) {
      const { body } = await ask({ query: { ...query, ...(after && { after }) } });
      items.push(...body!.items);
      after = body!.next_cursor;
      if (body!.up_to_date) return { items, after };
    }
  }
  const models = 'webform,pathway';

  test('returns each record from the beginning, then what changes', async () => {
    const [id, gone] = [freshId(), freshId()];
    for (const each of [id, gone]) await save('webform', each, 'First');
    await remove('webform', gone);
    const { items, after } = await follow({ models, limit: 1_000 });
    const found = items.filter((item) => item.model === 'webform' && item.id === id);
    expect(found).toEqual([
      { model: 'webform', id, version: 1, deleted: false, changed_at: expect.any(String) },
    ]);
    // Other test files delete records between two pages.
    expect(items.filter((item) => item.id === gone)).toEqual([]);
    await save('webform', id, 'Second');
    const changed = await follow({ models, after });
    expect(changed.items).toContainEqual(expect.objectContaining({ id, version: 2, deleted: false }));
    await remove('webform', id);
    const deleted = await follow({ models, after: changed.after });
    expect(deleted.items).toContainEqual(expect.objectContaining({ id, version: 3, deleted: true }));
  });

  test('leaves out access codes, and returns them by name with the scope content:list', async () => {
    const id = freshId();
    const { after } = await follow({ limit: 1_000 });
    await save('accesscode', id, 'Code');
    expect((await follow({ after })).items).not.toContainEqual(
      expect.objectContaining({ model: 'accesscode' }),
    );
    const named = `${example.path}?models=pathway,accesscode`;
    expect((await send({ path: named })).error?.error).toBe('insufficient_scope');
    expect(await send({ path: named, as: 'admin' })).toMatchObject({ status: 200 });
    // The cursor says nothing about access codes.
    const wider = await send({ path: `${named}&after=${after}`, as: 'admin' });
    expect(wider.error?.error).toBe('validation_failed');
  });

  test('returns 410 for a cursor of another epoch', async () => {
    const { body } = await ask({ query: { limit: 1 } });
    const cursor = JSON.parse(Buffer.from(body!.next_cursor, 'base64url').toString());
    // A process of the next release, which has another model, may have returned it.
    const next = { ...cursor, models: [...cursor.models, 'later'], epoch: randomUUID() };
    const other = Buffer.from(JSON.stringify(next)).toString('base64url');
    expect((await ask({ query: { after: other } })).error?.error).toBe('cursor_expired');
  });
});
