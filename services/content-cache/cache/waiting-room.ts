import { setTimeout as sleep } from 'node:timers/promises';

import type { View } from './keys.ts';
import type { ReadReply } from './node.ts';

/** How long to wait between two questions, in milliseconds. */
const STEP_MS = { least: 10, most: 25 };
/** After so long, in milliseconds, a reader need not wait for the fill any more, when there is a turn for it. */
const PATIENCE_MS = 300;
/** Turns at a time, for each view of a record. */
const TURNS = 2;

/** How a wait ends: with another reader's fill, with a lease, or with a turn to read the database without one. */
export type WaitReply = Exclude<ReadReply, { status: 'WAIT' }> | { status: 'TURN'; end: () => void };

export interface WaitingRoom {
  /**
   * Waits for another reader's fill, little longer than `limitMs` milliseconds. Who is given a turn calls `end` when
   * its read of the database is over. Rejects with what asking was rejected with.
   */
  wait(key: string, view: View, limitMs: number): Promise<WaitReply>;
}

interface Waiter {
  since: number;
  limitMs: number;
  reply: PromiseWithResolvers<WaitReply>;
}

interface Room {
  /** The oldest first. */
  waiters: Waiter[];
  turns: number;
}

/**
 * Readers of this process that wait for the same fill ask Redis together: a thousand of them, each on its own, would
 * keep it from anything else. One READ serves those who were there when it was sent, and nobody who comes later: a clear
 * could have been acknowledged in between.
 *
 * When the database is slow, those whose patience ends must not all go there: they would take every connection, and
 * keep the very fill from getting through that the others wait for. So only a few do at a time, each with a read of its
 * own, in case the lease's holder is gone; the others go on asking. `limitMs` later that lease has ended for certain,
 * somebody has taken the next one, and whoever is still here reads the database, so that no read waits for ever.
 */
export function createWaitingRoom(ask: (key: string, view: View) => Promise<ReadReply>): WaitingRoom {
  const rooms = new Map<string, Room>();

  async function serve(key: string, view: View, room: Room): Promise<void> {
    // Open until the last turn is over, too: who comes meanwhile counts it.
    while (room.waiters.length > 0 || room.turns > 0) {
      await sleep(STEP_MS.least + Math.random() * (STEP_MS.most - STEP_MS.least));
      if (room.waiters.length === 0) continue;
      const asking = room.waiters.splice(0);
      const askedAt = performance.now();
      await ask(key, view).then(
        (reply) => handOut(room, asking, reply, askedAt),
        (error: Error) => asking.forEach((waiter) => waiter.reply.reject(error)),
      );
    }
    rooms.delete(`${key}:${view}`);
  }

  return {
    wait(key, view, limitMs) {
      const waiter: Waiter = { since: performance.now(), limitMs, reply: Promise.withResolvers() };
      const name = `${key}:${view}`;
      const room = rooms.get(name);
      if (room) {
        room.waiters.push(waiter);
      } else {
        const opened = { waiters: [waiter], turns: 0 };
        rooms.set(name, opened);
        void serve(key, view, opened);
      }
      return waiter.reply.promise;
    },
  };
}

/** A hit is for all of them, a lease for one; the others get a turn or ask again. */
function handOut(room: Room, asking: Waiter[], reply: ReadReply, askedAt: number): void {
  if (reply.status === 'HIT') {
    asking.forEach((waiter) => waiter.reply.resolve(reply));
    return;
  }
  if (reply.status === 'FILL') asking.shift()!.reply.resolve(reply);
  const patient = asking.filter((waiter) => {
    // Until the question, not until now: when this process was busy all the time, a last question shall find what came
    // in meanwhile.
    const waited = askedAt - waiter.since;
    const isTurn = waited >= waiter.limitMs || (waited >= PATIENCE_MS && room.turns < TURNS);
    if (isTurn) giveTurn(room, waiter);
    return !isTurn;
  });
  room.waiters.unshift(...patient);
}

function giveTurn(room: Room, waiter: Waiter): void {
  room.turns += 1;
  waiter.reply.resolve({ status: 'TURN', end: () => void (room.turns -= 1) });
}
