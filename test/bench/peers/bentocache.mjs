// bentocache, as its documentation has it. LAYERS: l2, Redis alone; l1+l2, with a memory cache in front whose entries the
// other processes are told to drop over Redis (its bus).
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
    cache.getOrSet({
      key: `${model}:${id}:${view}`,
      ttl: ttl * 1000,
      factory: () => load(model, id, view),
    }),
  async clear(model, id) {
    await cache.deleteMany({ keys: views.map((view) => `${model}:${id}:${view}`) });
    return views.length;
  },
});
