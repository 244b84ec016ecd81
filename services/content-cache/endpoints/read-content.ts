import {
  currentContext,
  etagOf,
  HttpError,
  matchesIfNoneMatch,
  type Handler,
} from '@content-platform/chassis';
import type { readContent as contract } from '@content-platform/contract';
import type { ContentCache } from '../cache/index.ts';
import type { ContentStore } from '../content-store.ts';
import type { CacheMetrics } from '../metrics.ts';
import type { ModelAccess } from '../model-access.ts';

interface ReadContentDeps {
  cache: Pick<ContentCache, 'read'>;
  records: ContentStore;
  metrics: CacheMetrics;
  access: ModelAccess;
}

export function readContent(deps: ReadContentDeps): Handler<typeof contract> {
  const { cache, records, metrics, access } = deps;
  return async ({ params: { model, id }, query: { view }, header, caller }) => {
    access.requireRead(caller, model);
    const { outcome, record } = await cache.read(model, id, view, () => records.load(model, id, view));
    metrics.reads.inc({ model, outcome });
    const context = currentContext();
    if (context) context.cache = outcome;
    if (!record) {
      throw new HttpError('not_found', `Record ${model}/${id} was not found.`, {
        headers: { 'X-Cache': outcome },
      });
    }
    const etag = etagOf(record.payload);
    const headers = { 'X-Cache': outcome, ETag: etag, 'Cache-Control': 'private, no-cache' };
    if (matchesIfNoneMatch(header('if-none-match'), etag)) return { status: 304, headers };
    // The payload is already JSON text: parsing it would cost more than the read.
    return { status: 200, headers, body: record.payload as never };
  };
}
