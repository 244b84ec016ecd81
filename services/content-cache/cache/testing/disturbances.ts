import { setTimeout as sleep } from 'node:timers/promises';

import type { Random } from './random.ts';
import type { RedisServer } from '../../../../test/support/redis-server.ts';

export type Disturbance = keyof typeof disturbances;

/** What befalls a Redis in its life. Each resolves when Redis answers again. */
const disturbances = {
  /** Longer than a command's timeout, mostly. */
  async hang(redis: RedisServer, random: Random) {
    redis.pause();
    await sleep(100 + random() * 600);
    redis.resume();
  },
  /** Comes back with what it had saved: clears since then are undone. */
  async crash(redis: RedisServer, random: Random) {
    await redis.admin.save();
    await sleep(random() * 400);
    await redis.kill();
    await redis.restart();
  },
  async forgetScripts(redis: RedisServer) {
    await redis.admin.script('FLUSH');
  },
  async evict(redis: RedisServer) {
    for (let count = 0; count < 20; count += 1) {
      const key = await redis.admin.randomkey();
      if (key !== null) await redis.admin.del(key);
    }
  },
  async dropConnections(redis: RedisServer) {
    await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal');
  },
};

/** Brings them upon Redis one after the other until `over`, with calm after each that lets caches recover and fill. */
export async function disturb(
  redis: RedisServer,
  kinds: Disturbance[],
  random: Random,
  over: AbortSignal,
): Promise<void> {
  for (const kind of kinds) {
    await sleep(300 + random() * 200);
    if (over.aborted) return;
    await disturbances[kind](redis, random);
    await sleep(1000 + random() * 300);
  }
}
