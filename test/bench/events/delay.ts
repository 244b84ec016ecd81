import { Agent, request } from 'undici';
import { cacheInvalidation, clearModel } from '@content-platform/contract';
import { openLoop } from '../open-loop.ts';
import { timesOf, type Times } from '../percentiles.ts';
import type { Ground } from './ground.ts';
import { cacheAll, freshIds, keyOf } from './records.ts';

export interface Delay {
  perSecond: number;
  /** In ms. */
  times: Times;
  errors: string[];
}

/** One after the other is sent when it is due, each about a cached record of its own. */
async function measure(
  ground: Ground,
  perSecond: number,
  seconds: number,
  send: (id: number) => Promise<void>,
): Promise<Delay> {
  const ids = freshIds(perSecond * seconds);
  await cacheAll(ground.redis.admin, ids);
  let next = 0;
  const kind = { name: 'one', weight: 1, send: () => send(ids[next++]!) };
  const outcomes = await openLoop([kind], perSecond, seconds);
  const errors = outcomes.flatMap(({ error }) => error ?? []);
  return { perSecond, times: timesOf(outcomes.map(({ ms }) => ms)), errors: [...new Set(errors)] };
}

/** From the moment an event is due to be sent until Redis tells (by a keyspace event) that its record is gone. */
export async function measureEvents(ground: Ground, perSecond: number, seconds: number): Promise<Delay> {
  const { topic } = cacheInvalidation;
  const { admin } = ground.redis;
  const waiting = new Map<string, () => void>();
  const listener = admin.duplicate();
  listener.on('message', (_, key: string) => waiting.get(key)?.());
  await admin.config('SET', 'notify-keyspace-events', 'Eg');
  await listener.subscribe('__keyevent@0__:del');
  try {
    return await measure(ground, perSecond, seconds, async (id) => {
      const key = keyOf(id);
      const gone = new Promise<void>((resolve) => waiting.set(key, resolve));
      const value = JSON.stringify({ model: 'webform', id, occurred_at: new Date().toISOString() });
      await ground.producer.send({ topic, acks: -1, messages: [{ key, value }] });
      await gone;
      waiting.delete(key);
    });
  } finally {
    listener.disconnect();
    await admin.config('SET', 'notify-keyspace-events', '');
  }
}

/** From the moment a call is due to the end of its reply. */
async function measurePosts(
  ground: Ground,
  origin: string,
  perSecond: number,
  seconds: number,
  isGood: (text: string) => boolean,
): Promise<Delay> {
  const dispatcher = new Agent({ connections: 64, pipelining: 1 });
  try {
    return await measure(ground, perSecond, seconds, async (id) => {
      const reply = await request(origin + clearModel.path, {
        dispatcher,
        method: 'POST',
        headers: ground.headers,
        body: JSON.stringify({ model: 'webform', id }),
      });
      const text = await reply.body.text();
      if (reply.statusCode !== 200 || !isGood(text)) throw new Error(`${reply.statusCode}: ${text}`);
    });
  } finally {
    await dispatcher.close();
  }
}

/** Calls of clear-model, through the gateway. */
export const measureCalls = (ground: Ground, perSecond: number, seconds: number): Promise<Delay> =>
  measurePosts(ground, ground.gateway, perSecond, seconds, (text) => text.includes('"keys_deleted":1'));

/** The same to a bare Node server, which does nothing: what is late there the machine and the load make late. */
export const measureBare = (ground: Ground, perSecond: number, seconds: number): Promise<Delay> =>
  measurePosts(ground, ground.bare, perSecond, seconds, () => true);
