// bentocache, used as documented. LAYERS: l2 is Redis alone; l1+l2 adds a memory cache, whose entries other processes
// drop after a message over Redis (the bus).
import { BentoCache, bentostore } from 'bentocache';
import { memoryDriver } from 'bentocache/drivers/memory';
import { redisBusDriver, redisDriver } from 'bentocache/drivers/redis';
import { connectRedis } from './settings.mjs';
import { load, serve, ttl, views } from './records.mjs';

const shared = redisDriver({ connection: connectRedis() });
const { hostname: host, port } = new URL(process.env.REDIS_URL);
const store =
  process.env.LAYERS === 'l2'
    ? bentostore().useL2Layer(shared)
    : bentostore()
        .useL1Layer(memoryDriver({ maxSize: '10mb' }))
        .useL2Layer(shared)
        .useBus(redisBusDriver({ connection: { host, port: Number(port) } }));
const cache = new BentoCache({ default: 'content', stores: { content: store } });

serve({
  read: (model, id, view) =>
    cache.getOrSet({ key: `${model}:${id}:${view}`, ttl: ttl * 1000, factory: () => load(model, id, view) }),
  async clear(model, id) {
    await cache.deleteMany({ keys: views.map((view) => `${model}:${id}:${view}`) });
    return views.length;
  },
});
