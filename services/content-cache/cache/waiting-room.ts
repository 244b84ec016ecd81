import { setTimeout as sleep } from 'node:timers/promises';

import type { View } from './keys.ts';
import type { ReadReply } from './node.ts';

/** How long to wait between two questions, in milliseconds. */
const STEP_MS = { least: 10, most: 25 };

interface Waiter {
  until: number;
  answer: PromiseWithResolvers<ReadReply>;
}

export interface WaitingRoom {
  /**
   * Waits for another reader's fill: resolves with the first answer that is not WAIT, or with the WAIT to a question
   * asked `limitMs` milliseconds from now or later. Rejects with what asking was rejected with.
   */
  wait(key: string, view: View, limitMs: number): Promise<ReadReply>;
}

/**
 * Readers of this process that wait for the same fill ask Redis together: a thousand of them, each on its own, would
 * keep it from anything else. One READ serves those who were there when it was sent, and nobody who comes later: a clear
 * could have been acknowledged in between.
 */
export function createWaitingRoom(ask: (key: string, view: View) => Promise<ReadReply>): WaitingRoom {
  const rooms = new Map<string, Waiter[]>();

  async function serve(key: string, view: View, room: Waiter[]): Promise<void> {
    while (room.length > 0) {
      await sleep(STEP_MS.least + Math.random() * (STEP_MS.most - STEP_MS.least));
      const asking = room.splice(0);
      const askedAt = performance.now();
      await ask(key, view).then(
        (reply) => room.push(...answer(asking, reply, askedAt)),
        (error: Error) => asking.forEach((waiter) => waiter.answer.reject(error)),
      );
    }
    rooms.delete(`${key}:${view}`);
  }

  return {
    wait(key, view, limitMs) {
      const waiter: Waiter = { until: performance.now() + limitMs, answer: Promise.withResolvers() };
      const name = `${key}:${view}`;
      const room = rooms.get(name);
      if (room) {
        room.push(waiter);
      } else {
        const opened = [waiter];
        rooms.set(name, opened);
        void serve(key, view, opened);
      }
      return waiter.answer.promise;
    },
  };
}

/**
 * Hands the answer out, and returns who has to ask again: a lease is for one only, and when this process was busy all
 * the time a last question shall find what came in meanwhile.
 */
function answer(asking: Waiter[], reply: ReadReply, askedAt: number): Waiter[] {
  if (reply.status === 'HIT') {
    asking.forEach((waiter) => waiter.answer.resolve(reply));
    return [];
  }
  if (reply.status === 'FILL') asking.shift()!.answer.resolve(reply);
  const outOfTime = asking.filter((waiter) => waiter.until <= askedAt);
  outOfTime.forEach((waiter) => waiter.answer.resolve({ status: 'WAIT' }));
  return asking.filter((waiter) => waiter.until > askedAt);
}
