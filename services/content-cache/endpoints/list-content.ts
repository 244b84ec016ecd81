import { z } from 'zod';
import { page, type Handler } from '@content-platform/chassis';
import { id, model, type listContent as contract, type Model, type View } from '@content-platform/contract';
import type { ContentCache } from '../cache/index.ts';
import type { ContentStore } from '../content-store.ts';
import { decodeCursor, encodeCursor, invalidCursor } from '../cursor.ts';
import type { CacheMetrics } from '../metrics.ts';
import type { ModelAccess } from '../model-access.ts';

interface ListContentDeps {
  cache: Pick<ContentCache, 'readMany'>;
  metrics: CacheMetrics;
  records: ContentStore;
  access: ModelAccess;
}

/** The last record of the previous page. */
const lastRecord = z.strictObject({ model, id });

function decode(text: string, model: string): number {
  const cursor = decodeCursor(lastRecord, text, 'cursor');
  if (cursor.model !== model) throw invalidCursor('cursor');
  return cursor.id;
}

export function listContent({ cache, records, metrics, access }: ListContentDeps): Handler<typeof contract> {
  async function readIds(model: Model, ids: number[], view: View): Promise<string> {
    const load = (some: number[]) => records.loadMany(model, some, view);
    const reads = await cache.readMany(model, ids, view, load);
    for (const { outcome } of reads) metrics.reads.inc({ model, outcome });
    const items = reads.flatMap(({ record }) => record?.payload ?? []);
    const missing = ids.filter((_, index) => !reads[index]!.record);
    return `{"items":[${items.join()}],"missing":[${missing.join()}],"next_cursor":null}`;
  }

  return async ({ params: { model }, query: { ids, limit = 50, cursor, view }, caller }) => {
    access.requireList(caller, model);
    if (ids) return { status: 200, body: (await readIds(model, [...new Set(ids)], view)) as never };
    const after = cursor === undefined ? 0 : decode(cursor, model);
    const { items, next_cursor } = await page(
      limit,
      (max) => records.list(model, view, after, max),
      ({ payload }) => payload,
    );
    const next = next_cursor && encodeCursor({ model, id: Number(next_cursor) });
    // The payloads are already JSON text.
    const body = `{"items":[${items.join()}],"next_cursor":${JSON.stringify(next)}}`;
    return { status: 200, body: body as never };
  };
}
