import { expect, test } from '@jest/globals';
import { createLogger, createRedis } from '@content-platform/chassis';
import { startCluster } from '../../../test/support/redis-cluster.ts';
import { until } from '../../../test/support/wait.ts';
import { guessBackoff } from './guesses.ts';
import { createRedisCounts } from './redis-counts.ts';

test('a cluster counts all that belongs to one guess together', async () => {
  const cluster = await startCluster({ primaries: 3, replicas: 0 });
  const redis = createRedis(cluster.url, createLogger('auth', 'error'));
  try {
    await until('Redis is connected', async () => (await redis.ping()) === 'PONG');
    const counts = createRedisCounts(redis, guessBackoff);
    // Of these names some would be in other slots.
    for (let index = 0; index < 5; index += 1) {
      const [account, address] = [`account:${index}`, `address:${index}`];
      const subjects = [
        { key: account, limit: 1 },
        { key: address, limit: 10 },
      ];
      const first = await counts.reserve(subjects);
      expect(first.waitMs).toBe(0);
      expect((await counts.reserve(subjects)).waitMs).toBeGreaterThan(0);
      await first.giveBack();
      await counts.forget([account, address]);
      expect((await counts.reserve(subjects)).waitMs).toBe(0);
    }
  } finally {
    redis.disconnect();
    await cluster.stop();
  }
});
