// cache-manager with @keyv/redis, used as documented.
import KeyvRedis from '@keyv/redis';
import { createCache } from 'cache-manager';
import { Keyv } from 'keyv';
import { load, serve, ttl, views } from './records.mjs';

const cache = createCache({
  stores: [new Keyv({ store: new KeyvRedis(process.env.REDIS_URL) })],
  ttl: ttl * 1000,
});

serve({
  read: (model, id, view) => cache.wrap(`${model}:${id}:${view}`, () => load(model, id, view)),
  async clear(model, id) {
    await cache.mdel(views.map((view) => `${model}:${id}:${view}`));
    return views.length;
  },
});
