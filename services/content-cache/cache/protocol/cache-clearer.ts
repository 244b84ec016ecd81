import { setTimeout as sleep } from 'node:timers/promises';
import { type CacheNode, CacheRefused, type ClearTransport, SlotsMoving } from '../connection.ts';
import { recordKey } from './record-cache.ts';

/** sweep: other programs may have written keys `<model>:<id>:…`, clears delete them; none: there are no such keys. */
export type UnmanagedKeys = 'sweep' | 'none';

/**
 * All methods return the number of keys deleted, one for each cached view and one for each unmanaged key, once no read
 * can return anything older than what was committed at the call.
 * A CacheError (CacheUnavailable, CacheRefused) means that the clear may have failed: retry the clear before acknowledging it.
 */
export interface CacheClearer {
  /** Clears one record: `<model>:<id>` and, with 'sweep', `<model>:<id>:…`. */
  clearRecord(model: string, id: number): Promise<number>;
  /** Clears records of a model, with one sweep. Returns the number for each of the ids, which must differ. */
  clearRecords(model: string, ids: readonly number[]): Promise<number[]>;
  /** Clears all records of a known model: the pattern `<model>:*`. */
  clearPattern(model: string): Promise<number>;
}

/** Maximum number of CLEARs sent at once, so that reads do not wait behind a long list. */
const sliceSize = 100;

export function createCacheClearer(transport: ClearTransport, unmanagedKeys: UnmanagedKeys): CacheClearer {
  const sweep = createSweep(transport);

  async function clearRecords(model: string, ids: readonly number[]): Promise<number[]> {
    const keys = ids.map((id) => recordKey(model, id));
    const counts: number[] = [];
    for (let start = 0; start < keys.length; start += sliceSize)
      counts.push(...(await Promise.all(keys.slice(start, start + sliceSize).map(transport.clear))));
    if (unmanagedKeys === 'none') return counts;
    const unmanaged = await sweep(keys);
    return counts.map((count, index) => count + unmanaged[index]!);
  }

  return {
    clearRecord: async (model, id) => (await clearRecords(model, [id]))[0]!,
    clearRecords,
    clearPattern: async (model) => (await sweep([modelTarget(model)]))[0]!,
  };
}

/** Keys to delete. `webform:12`: other programs' keys of the record (`webform:12:…`). `webform:*`: every key of the model. */
type SweepTarget = string;

/** Attempts when slots of the cluster move during a scan, and the pause between them. */
const maxScans = 4;
const scanPauseMs = 150;

/** The keys that recordKey() makes, whose views CLEAR counts. `webform:1x` is another program's: UNLINK deletes it. */
const recordKeyForm = /^[^:]+:[1-9][0-9]{0,15}$/;

interface Batch {
  deleted: Map<SweepTarget, number>;
  done: PromiseWithResolvers<void>;
}

/**
 * Returns a function that deletes the keys of different targets with a scan that begins after its call. All waiting calls
 * share the next scan. The function returns how many keys each target counts for (of several calls with one target in one
 * scan only the first gets the number), and throws CacheRefused or CacheUnavailable if some keys may remain.
 */
function createSweep(transport: ClearTransport) {
  let next: Batch | undefined;
  let running = false;

  async function run(): Promise<void> {
    running = true;
    while (next) {
      const { deleted, done } = next;
      // Later calls join the next batch: a key could have been written behind this scan's cursor.
      next = undefined;
      await scanAll(transport, deleted).then(done.resolve, done.reject);
    }
    running = false;
  }

  return async function sweep(targets: readonly SweepTarget[]): Promise<number[]> {
    const batch = (next ??= { deleted: new Map(), done: Promise.withResolvers() });
    const added = new Set(targets.filter((target) => !batch.deleted.has(target)));
    for (const target of added) batch.deleted.set(target, 0);
    if (!running) void run();
    await batch.done.promise;
    return targets.map((target) => (added.has(target) ? batch.deleted.get(target)! : 0));
  };
}

/** Scans again when a slot moved during the scan: its keys may have been missed on both nodes. */
async function scanAll(transport: ClearTransport, deleted: Map<SweepTarget, number>): Promise<void> {
  for (let scan = 1; ; scan += 1) {
    try {
      return await scanOnce(transport, deleted);
    } catch (error) {
      if (!(error instanceof SlotsMoving) || scan === maxScans) throw error;
      await sleep(scanPauseMs);
    }
  }
}

/**
 * Scans every primary once. Even a primary that was cut off and replaced answers SCAN. So before and after the scan each
 * server must run a script that needs write access and return the same incarnation. The slots must also have the same
 * owners and config epochs: a slot that moved away and back has a newer epoch.
 */
async function scanOnce(transport: ClearTransport, deleted: Map<SweepTarget, number>): Promise<void> {
  const ownership = await transport.slotOwnership();
  const nodes = transport.primaries();
  const incarnations = () => Promise.all(nodes.map((node) => node.incarnation()));
  const before = await incarnations();
  await Promise.all(nodes.map((node) => scanNode(node, deleted)));
  const after = await incarnations();
  if (before.join() !== after.join())
    throw new CacheRefused('Redis was restarted or replaced during the sweep');
  if ((await transport.slotOwnership()) !== ownership)
    throw new SlotsMoving('slots of the cluster were moved during the sweep');
}

async function scanNode(node: CacheNode, deleted: Map<SweepTarget, number>): Promise<void> {
  const glob = globFor([...deleted.keys()]);
  let cursor = '0';
  do {
    const page = await node.scan(cursor, glob);
    cursor = page.cursor;
    await deletePage(node, page.keys, deleted);
  } while (cursor !== '0');
}

/** Escapes glob characters for SCAN's MATCH. */
const escapeGlob = (text: string): string => text.replaceAll(/[\\*?[\]^-]/g, String.raw`\$&`);

/** One scan serves many targets: the glob only narrows the scan down, targetOf() decides for each key. */
function globFor(targets: SweepTarget[]): string {
  const [first] = targets;
  if (targets.length === 1 && !isModel(first!)) return `${escapeGlob(first!)}:*`;
  const models = new Set(targets.map(modelOf));
  const model = models.size === 1 ? escapeGlob(modelOf(first!)) : '*';
  return targets.some(isModel) ? `${model}:*` : `${model}:*:*`;
}

async function deletePage(node: CacheNode, keys: Buffer[], deleted: Map<SweepTarget, number>): Promise<void> {
  const unmanaged = new Map<SweepTarget, Buffer[]>();
  const work: Promise<void>[] = [];
  const add = (target: SweepTarget, deletion: Promise<number>) =>
    deletion.then((count) => void deleted.set(target, deleted.get(target)! + count));
  for (const key of keys) {
    // Keys need not be UTF-8: `text` has one character for each byte, and UNLINK gets the bytes.
    const text = key.toString('latin1');
    const target = targetOf(text, deleted);
    if (target === undefined) continue;
    if (recordKeyForm.test(text)) work.push(add(target, node.clear(text)));
    else unmanaged.set(target, [...(unmanaged.get(target) ?? []), key]);
    if (work.length === sliceSize) await Promise.all(work.splice(0));
  }
  for (const [target, group] of unmanaged) work.push(add(target, node.unlink(group)));
  await Promise.all(work);
}

/** The target that `key` belongs to, if any: its model, or its record when the key continues after the id. */
function targetOf(key: string, targets: ReadonlyMap<SweepTarget, number>): SweepTarget | undefined {
  const modelEnd = key.indexOf(':');
  if (modelEnd < 0) return undefined;
  const model = modelTarget(key.slice(0, modelEnd));
  if (targets.has(model)) return model;
  const recordEnd = key.indexOf(':', modelEnd + 1);
  const record = key.slice(0, recordEnd);
  return recordEnd > 0 && targets.has(record) ? record : undefined;
}

const modelTarget = (model: string): SweepTarget => `${model}:*`;
const isModel = (target: SweepTarget): boolean => target.endsWith(':*');
const modelOf = (target: SweepTarget): string => target.slice(0, target.indexOf(':'));
