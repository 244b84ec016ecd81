import { z } from 'zod';
import { HttpError, unavailable, type Database } from '@content-platform/chassis';
import { id, type Model } from '@content-platform/contract';
import { createChangeLog, isBefore, oldestOpen, type Change, type Snapshot } from './change-log.ts';

/** Open transactions that a cursor lists at most, so that a cursor fits into a URL. */
const maxOpen = 50;

const xid = z.string().regex(/^[1-9]\d{0,18}$/);
/** May be a model of the next release: during its deployment, processes of this release get its cursors. */
const modelName = z.string().regex(/^\w{1,63}$/);
const snapshot = z.string().refine(isSnapshot);

/** The position of a reader of the log. */
export const feedCursor = z.strictObject({
  epoch: z.uuid(),
  models: z.array(modelName),
  /** The reader has the changes that this snapshot sees. */
  base: snapshot,
  /** Set while a client reads the pages of one answer: each page continues after `last`, and the final page ends it. */
  pass: z
    .strictObject({
      /** The base after the pass. */
      window: snapshot,
      /** The pass returns only the changes that the window sees, so that it ends under any number of new changes. */
      isLimited: z.boolean(),
      last: z.tuple([xid, modelName, id]).readonly(),
    })
    .optional(),
});
type FeedCursor = z.infer<typeof feedCursor>;

/** The base of a reader that has nothing. */
const beginning: Snapshot = '1:1:';

interface FeedPage {
  changes: Change[];
  cursor: FeedCursor;
  /** Whether the reader has every change that was committed before this call. */
  isUpToDate: boolean;
}

export type ChangeFeed = ReturnType<typeof createChangeFeed>;

/** Reads the log of changes for clients, from where they stopped. */
export function createChangeFeed(query: Database['query']) {
  const log = createChangeLog(query);

  /** Returns the position. Begins another epoch first if the transaction ids come from another server (a restore). */
  async function position() {
    const current = await log.position();
    if (current.hasSameOrigin) return current;
    await log.startEpoch(current.epoch);
    const begun = await log.position();
    // startEpoch rewrites at most 10,000 restored records, so further calls are needed.
    if (!begun.hasSameOrigin) throw unavailable('The database was restored. Retry later.');
    return begun;
  }

  return {
    /**
     * Returns at most `limit` changes of `models` after the cursor; without a cursor, of every record that exists. Each
     * change that was committed is in a later page, unless a newer change of its record replaces it. Throws 410 if changes
     * since the cursor may be unknown, 503 if an epoch began during a first page, and the errors of `query`.
     */
    async read(given: FeedCursor | undefined, models: Model[], limit: number): Promise<FeedPage> {
      const { epoch, base, pass } = given ?? { epoch: (await position()).epoch, base: beginning };
      const isFirstPass = base === beginning;
      const to = pass?.isLimited ? pass.window : undefined;
      const range = { from: base, to, after: pass?.last, models, onlyExisting: isFirstPass };
      const { now, changes, last } = await log.readPage(range, limit);
      const window = pass?.window ?? shorten(now);
      // Read after the page, so that a new epoch or a removed tombstone is noticed.
      const { epoch: current, purged } = await position();
      // A removed tombstone may be a deletion that the reader lacks. A first pass lists existing records, so it needs
      // no tombstone from before its window.
      const isPurged = BigInt(purged) >= BigInt(oldestOpen(isFirstPass ? window : base));
      if (current !== epoch || isPurged || isBefore(now, base) || isBefore(now, window))
        throw given ? expiredCursor() : unavailable('The records were replaced meanwhile. Retry later.');
      const next = { epoch, models };
      if (!last) return { changes, cursor: { ...next, base: window }, isUpToDate: !pass };
      // A shortened window does not see each change of this page, so it must not limit the pass.
      const isLimited = pass?.isLimited ?? window === now;
      return { changes, cursor: { ...next, base, pass: { window, isLimited, last } }, isUpToDate: false };
    },
  };
}

export const expiredCursor = () =>
  new HttpError(
    'cursor_expired',
    'The changes since this cursor are no longer known. Discard your copy and start again without `after`.',
  );

/** Returns a snapshot with at most `maxOpen` open transactions, which sees no transaction from the next open one on. */
function shorten(snapshot: Snapshot): Snapshot {
  const [oldest, , list] = snapshot.split(':') as [string, string, string];
  const open = list.split(',');
  return open.length > maxOpen ? `${oldest}:${open[maxOpen]}:${open.slice(0, maxOpen).join(',')}` : snapshot;
}

/** Whether PostgreSQL accepts the text as a snapshot. */
function isSnapshot(text: string): boolean {
  if (!/^[1-9]\d{0,18}:[1-9]\d{0,18}:([1-9]\d{0,18}(,[1-9]\d{0,18})*)?$/.test(text)) return false;
  const [oldest, next, ...open] = text.split(/[:,]/).filter(Boolean).map(BigInt) as [bigint, bigint];
  return (
    open.every((one) => one < next) &&
    [oldest, ...open, next].every((one, index, all) => index === 0 || all[index - 1]! <= one)
  );
}
