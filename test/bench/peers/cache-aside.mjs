// A hand-written cache: GET, otherwise read the database and SET. CLEAR is the way to clear a record: by its known keys
// (del), or, if not all keys are known, by SCAN or KEYS with a pattern, or by a tag.
import { connectRedis } from './settings.mjs';
import { load, serve, ttl, views } from './records.mjs';

const redis = connectRedis();
const keyOf = (model, id, view) => `${model}:${id}:${view}`;
const patternOf = (model, id) => `${model}:${id}:*`;
const set = (key, text) => redis.set(key, text, 'EX', ttl);

const tagOf = (model, id) => `tag:${model}:${id}:entries`;

/** Returns all items of a cursor; `step` reads one page. */
async function pagesOf(step, each) {
  let cursor = '0';
  do {
    const [next, page] = await step(cursor);
    if (page.length > 0) await each(page);
    cursor = next;
  } while (cursor !== '0');
}

const ways = {
  del: { keep: set, clear: (model, id) => redis.del(views.map((view) => keyOf(model, id, view))) },
  scan: {
    keep: set,
    async clear(model, id) {
      let deleted = 0;
      const pattern = patternOf(model, id);
      const step = (cursor) => redis.scan(cursor, 'MATCH', pattern, 'COUNT', 1000);
      await pagesOf(step, async (keys) => (deleted += await redis.del(keys)));
      return deleted;
    },
  },
  keys: {
    keep: set,
    async clear(model, id) {
      const keys = await redis.keys(patternOf(model, id));
      return keys.length > 0 ? redis.del(keys) : 0;
    },
  },
  // Like Laravel's RedisTaggedCache: a tag is a sorted set of its keys by expiry.
  tags: {
    async keep(key, text, model, id) {
      await redis.zadd(tagOf(model, id), Math.floor(Date.now() / 1000) + ttl, key);
      await set(key, text);
    },
    async clear(model, id) {
      let deleted = 0;
      const tag = tagOf(model, id);
      const step = (cursor) => redis.zscan(tag, cursor, 'MATCH', '*', 'COUNT', 1000);
      await pagesOf(step, async (page) => {
        deleted += await redis.del(page.filter((_, index) => index % 2 === 0));
      });
      await redis.del(tag);
      return deleted;
    },
  },
};
const { keep, clear } = ways[process.env.CLEAR];

serve({
  async read(model, id, view) {
    const key = keyOf(model, id, view);
    const known = await redis.get(key);
    if (known !== null) return known;
    const text = JSON.stringify(await load(model, id, view));
    await keep(key, text, model, id);
    return text;
  },
  clear,
});
