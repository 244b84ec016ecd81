import { setTimeout as sleep } from 'node:timers/promises';

import type { ClearingReach } from './connection.ts';
import { CacheRefused, SlotsUnsettled } from './errors.ts';
import { escapeGlob, isRecordKey } from './keys.ts';
import type { CacheNode } from './node.ts';

/**
 * What a sweep deletes: `webform:12` stands for what other programs keep for that record (`webform:12:…`),
 * `webform:*` for every key of the model, our own hashes included.
 */
type Target = string;

type SweepReach = Pick<ClearingReach, 'primaries' | 'slotMap'>;

/** How often a scan is begun anew because slots of the cluster were moved, and the pause before, in milliseconds. */
const SCANS = 4;
const SCAN_PAUSE_MS = 150;

export interface Sweeper {
  /**
   * Deletes the target's keys with a scan that begins after this call; all calls that wait share the next one.
   *
   * @returns how many keys that counts for; of calls with the same target in one scan the first has the number
   * @throws CacheRefused, CacheUnavailable: some keys may be left
   */
  sweep(target: Target): Promise<number>;
}

interface Batch {
  deleted: Map<Target, number>;
  done: PromiseWithResolvers<void>;
}

export function createSweeper(connection: SweepReach): Sweeper {
  let next: Batch | undefined;
  let running = false;

  async function run(): Promise<void> {
    running = true;
    while (next) {
      const { deleted, done } = next;
      // From here on the batch takes nobody in: a key could have been written behind the cursor.
      next = undefined;
      await scanAll(connection, deleted).then(done.resolve, done.reject);
    }
    running = false;
  }

  return {
    async sweep(target) {
      const batch = (next ??= { deleted: new Map(), done: Promise.withResolvers() });
      const first = !batch.deleted.has(target);
      if (first) batch.deleted.set(target, 0);
      if (!running) void run();
      await batch.done.promise;
      return first ? batch.deleted.get(target)! : 0;
    },
  };
}

/** A slot that is moved during a scan may have been passed on both sides: then all are scanned again. */
async function scanAll(connection: SweepReach, deleted: Map<Target, number>): Promise<void> {
  for (let scan = 1; ; scan += 1) {
    try {
      return await scanOnce(connection, deleted);
    } catch (error) {
      if (!(error instanceof SlotsUnsettled) || scan === SCANS) throw error;
      await sleep(SCAN_PAUSE_MS);
    }
  }
}

/**
 * Scans every primary once. SCAN is answered even by a primary that was cut off and replaced, so before the first and
 * after the last each must answer a script that only a server which may write runs, and be the same server still. And
 * the slots must belong to whom they did, under the same config epochs: one that went and came back has a newer one.
 */
async function scanOnce(connection: SweepReach, deleted: Map<Target, number>): Promise<void> {
  const slots = await connection.slotMap();
  const nodes = connection.primaries();
  const incarnations = () => Promise.all(nodes.map((node) => node.incarnation()));
  const before = await incarnations();
  await Promise.all(nodes.map((node) => scanNode(node, deleted)));
  const after = await incarnations();
  if (before.join() !== after.join())
    throw new CacheRefused('Redis was restarted or replaced during the sweep');
  if ((await connection.slotMap()) !== slots)
    throw new SlotsUnsettled('slots of the cluster were moved during the sweep');
}

async function scanNode(node: CacheNode, deleted: Map<Target, number>): Promise<void> {
  const glob = globFor([...deleted.keys()]);
  let cursor = '0';
  do {
    const page = await node.scan(cursor, glob);
    cursor = page.cursor;
    await deletePage(node, page.keys, deleted);
  } while (cursor !== '0');
}

/** One scan serves many targets, so the glob only narrows down; which keys are meant is decided key by key. */
function globFor(targets: Target[]): string {
  const [first] = targets;
  if (targets.length === 1 && !isModel(first!)) return `${escapeGlob(first!)}:*`;
  const models = new Set(targets.map(modelOf));
  const model = models.size === 1 ? escapeGlob(modelOf(first!)) : '*';
  return targets.some(isModel) ? `${model}:*` : `${model}:*:*`;
}

async function deletePage(node: CacheNode, keys: Buffer[], deleted: Map<Target, number>): Promise<void> {
  const unmanaged = new Map<Target, Buffer[]>();
  const work: Promise<void>[] = [];
  const add = async (target: Target, count: Promise<number>) => {
    deleted.set(target, (await count) + deleted.get(target)!);
  };
  for (const key of keys) {
    // Compared as text, one character a byte, and deleted as the bytes they are: they need not be UTF-8.
    const text = key.toString('latin1');
    const target = targetOf(text, deleted);
    if (target === undefined) continue;
    if (isRecordKey(text)) work.push(add(target, node.clear(text)));
    else unmanaged.set(target, [...(unmanaged.get(target) ?? []), key]);
  }
  for (const [target, group] of unmanaged) work.push(add(target, node.unlink(group)));
  await Promise.all(work);
}

/** The target that owns `key`, if any: its model as a whole, or its record when the key goes on after the id. */
function targetOf(key: string, targets: ReadonlyMap<Target, number>): Target | undefined {
  const modelEnd = key.indexOf(':');
  if (modelEnd < 0) return undefined;
  const model = modelTarget(key.slice(0, modelEnd));
  if (targets.has(model)) return model;
  const recordEnd = key.indexOf(':', modelEnd + 1);
  const record = key.slice(0, recordEnd);
  return recordEnd > 0 && targets.has(record) ? record : undefined;
}

/** The target that is a whole model: the pattern of clear-pattern. */
export function modelTarget(model: string): Target {
  return `${model}:*`;
}

function isModel(target: Target): boolean {
  return target.endsWith(':*');
}

function modelOf(target: Target): string {
  return target.slice(0, target.indexOf(':'));
}
