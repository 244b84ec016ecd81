import { setTimeout as sleep } from 'node:timers/promises';
import type { View } from '@content-platform/contract';
import type { ReadReply } from '../connection.ts';

/** The pause between two READs for the same waiters: a random time between the two limits. */
const minPauseMs = 10;
const maxPauseMs = 25;
/** A reader that has waited this long may read the database if a load permit is free. */
const minWaitMs = 300;
/** Maximum number of load permits at a time for each view of a record. */
const maxPermits = 2;

/**
 * A wait ends with another reader's fill, with a lease, or with a permit to read the database without a lease, whose holder
 * calls `end` after its read.
 */
export type WaitReply = Exclude<ReadReply, { status: 'WAIT' }> | { status: 'LOAD_PERMIT'; end: () => void };

interface Waiter {
  since: number;
  reply: PromiseWithResolvers<WaitReply>;
}

interface Group {
  /** The oldest first. */
  waiters: Waiter[];
  permits: number;
}

/**
 * Readers of this process that wait for the same fill share one READ: a thousand separate READs would block Redis. A
 * READ serves only the readers that waited when it was sent: a clear may have been acknowledged before a later reader
 * came. When the database is slow, waiting readers must not all read it: they would take every connection and block the
 * fill that the others wait for. So a few at a time get a load permit, in case the lease's holder has died; the others
 * keep waiting. After `limitMs` milliseconds the lease has certainly ended and a waiter has taken the next lease; every
 * remaining waiter then reads the database, so that every wait ends.
 */
export function createFillWaiters(
  sendRead: (key: string, view: View) => Promise<ReadReply>,
  limitMs: number,
) {
  const groups = new Map<string, Group>();

  async function serve(key: string, view: View, group: Group): Promise<void> {
    // The group exists until its last permit ends: a later waiter must count that permit.
    while (group.waiters.length > 0 || group.permits > 0) {
      await sleep(minPauseMs + Math.random() * (maxPauseMs - minPauseMs));
      if (group.waiters.length === 0) continue;
      const served = group.waiters.splice(0);
      const sentAt = performance.now();
      await sendRead(key, view).then(
        (reply) => distribute(group, served, reply, sentAt),
        (error: Error) => served.forEach((waiter) => waiter.reply.reject(error)),
      );
    }
    groups.delete(`${key}:${view}`);
  }

  /** A hit resolves every waiter, a lease the oldest; the others get a permit or wait for the next READ. */
  function distribute(group: Group, served: Waiter[], reply: ReadReply, sentAt: number): void {
    if (reply.status === 'HIT') return served.forEach((waiter) => waiter.reply.resolve(reply));
    if (reply.status === 'FILL') served.shift()!.reply.resolve(reply);
    const patient = served.filter((waiter) => {
      // Time until the READ was sent, not until now: if this process was busy, one more READ may find the fill.
      const waitedMs = sentAt - waiter.since;
      const mayLoad = waitedMs >= limitMs || (waitedMs >= minWaitMs && group.permits < maxPermits);
      if (mayLoad) grantPermit(group, waiter);
      return !mayLoad;
    });
    group.waiters.unshift(...patient);
  }

  /** Waits for another reader's fill, slightly over `limitMs` at most. Rejects with the CacheError of a failed READ. */
  return function wait(key: string, view: View): Promise<WaitReply> {
    const waiter: Waiter = { since: performance.now(), reply: Promise.withResolvers() };
    const name = `${key}:${view}`;
    const group = groups.get(name) ?? { waiters: [], permits: 0 };
    group.waiters.push(waiter);
    if (!groups.has(name)) void serve(key, view, group);
    groups.set(name, group);
    return waiter.reply.promise;
  };
}

function grantPermit(group: Group, waiter: Waiter): void {
  group.permits += 1;
  waiter.reply.resolve({ status: 'LOAD_PERMIT', end: () => void (group.permits -= 1) });
}
