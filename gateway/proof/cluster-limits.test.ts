import { expect, test } from '@jest/globals';
import { createBreaker, createLogger, createRedis } from '@content-platform/chassis';
import { createExactLimiter } from '../guard/rate-limit.ts';
import { startCluster } from '../../test/support/redis-cluster.ts';
import { until } from '../../test/support/wait.ts';

test('two gateways share counts in a Redis Cluster', async () => {
  const cluster = await startCluster({ primaries: 3, replicas: 0 });
  const logger = createLogger('gateway', 'error');
  const clients = [createRedis(cluster.url, logger), createRedis(cluster.url, logger)];
  try {
    const breaker = createBreaker(logger, 'nothing may go wrong here');
    const limiters = clients.map((redis) =>
      createExactLimiter(redis, breaker, 'test', { requests: 5, seconds: 600 }),
    );
    for (const redis of clients)
      await until('Redis is connected', async () => (await redis.ping()) === 'PONG');
    for (const subject of ['one', 'two', 'three', 'four', 'five']) {
      const waits = [];
      for (let request = 0; request < 6; request += 1)
        waits.push((await limiters[request % 2]!(subject)) !== undefined);
      expect(waits).toEqual([false, false, false, false, false, true]);
    }
    const counts = await Promise.all(cluster.primaries.map(({ admin }) => admin.dbsize()));
    expect(counts.reduce((sum, count) => sum + count)).toBe(5);
  } finally {
    for (const redis of clients) redis.disconnect();
    await cluster.stop();
  }
});
