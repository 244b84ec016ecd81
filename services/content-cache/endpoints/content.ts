import { z } from 'zod';
import {
  actorOf,
  type Caller,
  createSemaphore,
  currentContext,
  etagOf,
  type Handler,
  HttpError,
  invalidFields,
  matchesIfNoneMatch,
  requireScope,
  unavailable,
} from '@content-platform/chassis';
import { id, model, models, type Model, type Scope, type View } from '@content-platform/contract';
import type * as contract from '@content-platform/contract';
import { type ContentCache, tooLarge } from '../cache/index.ts';
import { expiredCursor, feedCursor, type ChangeFeed } from '../changes/change-feed.ts';
import type { ContentStore } from '../content-store.ts';
import type { CacheMetrics } from '../metrics.ts';

export interface ContentDeps {
  cache: Pick<ContentCache, 'read' | 'readMany'>;
  records: ContentStore;
  cacheMetrics: CacheMetrics;
  feed: ChangeFeed;
  /** Models whose reads need the scope content:restricted. */
  restricted: readonly Model[];
  /** Models whose lists need the scope content:list. */
  unlisted: readonly Model[];
}

type ModelAccess = Pick<ContentDeps, 'restricted' | 'unlisted'>;

const scopesToRead = ({ restricted }: ModelAccess, model: Model): Scope[] =>
  restricted.includes(model) ? ['content:restricted'] : [];
const scopesToList = (access: ModelAccess, model: Model): Scope[] =>
  access.unlisted.includes(model)
    ? ['content:list', ...scopesToRead(access, model)]
    : scopesToRead(access, model);

/** Throws 403 if the caller lacks one of the scopes. */
const requireAll = (caller: Caller, scopes: Scope[]) =>
  scopes.forEach((scope) => requireScope(caller, scope));

/** Returns the cursor as an opaque text for `next_cursor`. */
const encodeCursor = (cursor: object): string => Buffer.from(JSON.stringify(cursor)).toString('base64url');

/** Returns the cursor that a client sent as the query parameter `name`. Throws 422. */
function decodeCursor<T>(schema: z.ZodType<T>, text: string, name: string): T {
  try {
    return schema.parse(JSON.parse(Buffer.from(text, 'base64url').toString()));
  } catch {
    throw invalidCursor(name);
  }
}

/** Returns the 422 for a cursor that belongs to another request. */
const invalidCursor = (name: string) =>
  invalidFields([{ path: `query.${name}`, message: 'Must be `next_cursor` of a reply to this request.' }]);

export function readContent(deps: ContentDeps): Handler<typeof contract.readContent> {
  const { cache, records, cacheMetrics } = deps;
  return async ({ params: { model, id }, query: { view }, header, caller }) => {
    requireAll(caller, scopesToRead(deps, model));
    const { outcome, record } = await cache.read(model, id, view, () => records.load(model, id, view));
    cacheMetrics.reads.inc({ model, outcome });
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

/** Lists that are read at the same time: one has 26 MB and a record, or 26 MB from the cache and as much from the database. */
const maxListsAtATime = 4;
/** Characters of all lists that clients have not received yet: more would exhaust the memory of the process. */
const maxUnsent = 64e6;
/** Limit for the lists of one caller, so that a caller who reads slowly does not block the others. */
const maxUnsentOfCaller = maxUnsent / 2;

/** Returns a function that builds the text of a list. It throws 503 while clients have yet to receive large lists. */
function createListLimit() {
  const builds = createSemaphore(maxListsAtATime);
  let unsent = 0;
  const unsentOf = new Map<string, number>();
  const tooMany = () => unavailable('Too many large lists are being sent. Retry later.');

  function count(caller: string, length: number): void {
    unsent += length;
    const own = (unsentOf.get(caller) ?? 0) + length;
    if (own > 0) unsentOf.set(caller, own);
    else unsentOf.delete(caller);
  }

  return async (build: () => Promise<string>, by: Caller, signal: AbortSignal): Promise<string> => {
    const body = await builds.run(() => {
      if (unsent > maxUnsent) throw tooMany();
      return build();
    }, signal);
    if (signal.aborted) return body;
    const { length } = body;
    const caller = actorOf(by);
    const own = unsentOf.get(caller) ?? 0;
    if (own > 0 && own + length > maxUnsentOfCaller) throw tooMany();
    count(caller, length);
    // The signal is also aborted when the reply was sent.
    signal.addEventListener('abort', () => count(caller, -length), { once: true });
    return body;
  };
}

/** The last record of the previous page. */
const lastRecord = z.strictObject({ model, id });

export function listContent(deps: ContentDeps): Handler<typeof contract.listContent> {
  const { cache, records, cacheMetrics } = deps;
  const limited = createListLimit();

  async function readIds(model: Model, ids: number[], view: View): Promise<string> {
    const load = (some: number[]) => records.loadMany(model, some, view);
    const reads = await cache.readMany(model, ids, view, load);
    for (const { outcome } of reads) cacheMetrics.reads.inc({ model, outcome });
    if (reads.some(({ record }) => record?.payload === tooLarge.payload))
      throw invalidFields([{ path: 'query.ids', message: 'Too large for one reply. Ask for fewer ids.' }]);
    const items = reads.flatMap(({ record }) => record?.payload ?? []);
    const missing = ids.filter((_, index) => !reads[index]!.record);
    return `{"items":[${items.join()}],"missing":[${missing.join()}],"next_cursor":null}`;
  }

  async function readPage(model: Model, view: View, limit: number, after: number): Promise<string> {
    const found = await records.list(model, view, after, limit + 1);
    const shown = found.slice(0, limit).filter(({ payload }) => payload !== tooLarge.payload);
    const next = shown.length < found.length ? encodeCursor({ model, id: shown.at(-1)!.id }) : null;
    const items = shown.map(({ payload }) => payload);
    return `{"items":[${items.join()}],"next_cursor":${JSON.stringify(next)}}`;
  }

  return async ({ params: { model }, query: { ids, limit = 50, cursor, view }, caller, signal }) => {
    requireAll(caller, scopesToList(deps, model));
    const last = cursor === undefined ? { model, id: 0 } : decodeCursor(lastRecord, cursor, 'cursor');
    if (last.model !== model) throw invalidCursor('cursor');
    const build = () =>
      ids ? readIds(model, [...new Set(ids)], view) : readPage(model, view, limit, last.id);
    return { status: 200, body: (await limited(build, caller, signal())) as never };
  };
}

/** Returns a function that runs reads one at a time for each caller, and `max` at a time for all callers. */
function createPerCallerLimit(max: number) {
  const all = createSemaphore(max);
  const newest = new Map<string, Promise<unknown>>();
  return async <T>(read: () => Promise<T>, by: Caller, signal: AbortSignal): Promise<T> => {
    const caller = actorOf(by);
    const previous = newest.get(caller);
    const own = (async () => {
      await previous?.catch(() => undefined);
      return all.run(read, signal);
    })();
    newest.set(caller, own);
    return own.finally(() => newest.get(caller) === own && newest.delete(caller));
  };
}

/** A cursor that a client made up can scan the whole log. The other connections stay free for reads of records. */
const maxLogReads = 4;

export function listChanges({ feed, ...access }: ContentDeps): Handler<typeof contract.listChanges> {
  const limited = createPerCallerLimit(maxLogReads);
  return async ({ query: { after, limit, models: named }, caller, signal }) => {
    named?.forEach((model) => requireAll(caller, scopesToList(access, model)));
    const mayList = (model: Model) => scopesToList(access, model).every((scope) => caller.scopes.has(scope));
    const wanted = named ?? models.filter(mayList);
    const cursor = after === undefined ? undefined : decodeCursor(feedCursor, after, 'after');
    // Changes of further models are unknown. Records of a model that the caller lost would stay in its copy.
    const isOther = (model: Model) => cursor && cursor.models.includes(model) !== wanted.includes(model);
    if ((named ?? models).some(isOther)) throw named ? invalidCursor('after') : expiredCursor();
    const found = await limited(() => feed.read(cursor, wanted, limit), caller, signal());
    const items = found.changes.map(({ model, id, version, isDeleted, changedAt }) => ({
      model,
      id,
      version,
      deleted: isDeleted,
      changed_at: changedAt.toISOString(),
    }));
    const body = { items, next_cursor: encodeCursor(found.cursor), up_to_date: found.isUpToDate };
    return { status: 200, body };
  };
}
