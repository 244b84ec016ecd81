import { Agent, type Dispatcher } from 'undici';
import { cacheInvalidation, clearModel } from '@content-platform/contract';
import { openLoop } from '../open-loop.ts';
import { timesOf } from '../percentiles.ts';
import type { EventsContext } from './context.ts';
import { cacheAll, freshIds, keyOf } from './records.ts';

/** Sends requests when they are due, each about a separate cached record. */
async function measure(
  context: EventsContext,
  perSecond: number,
  seconds: number,
  send: (id: number) => Promise<void>,
) {
  const ids = freshIds(perSecond * seconds);
  await cacheAll(context.redis.admin, ids);
  let next = 0;
  const outcomes = await openLoop(() => send(ids[next++]!), perSecond, seconds);
  const errors = outcomes.flatMap(({ error }) => error ?? []);
  return { perSecond, times: timesOf(outcomes.map(({ ms }) => ms)), errors: [...new Set(errors)] };
}
export type Delay = Awaited<ReturnType<typeof measure>>;

/** Measures from the moment an event is due until Redis reports (by a keyspace event) that its key was deleted. */
export async function measureEvents(context: EventsContext, perSecond: number, seconds: number) {
  const { topic } = cacheInvalidation;
  const { admin } = context.redis;
  const waiting = new Map<string, () => void>();
  const listener = admin.duplicate();
  listener.on('message', (_, key: string) => waiting.get(key)?.());
  await admin.config('SET', 'notify-keyspace-events', 'Eg');
  await listener.subscribe('__keyevent@0__:del');
  try {
    return await measure(context, perSecond, seconds, async (id) => {
      const key = keyOf(id);
      const gone = new Promise<void>((resolve) => waiting.set(key, resolve));
      const value = JSON.stringify({ model: 'webform', id, occurred_at: new Date().toISOString() });
      await context.producer.send({ topic, acks: -1, messages: [{ key, value }] });
      await gone;
      waiting.delete(key);
    });
  } finally {
    listener.disconnect();
    await admin.config('SET', 'notify-keyspace-events', '');
  }
}

/**
 * Sends a POST. Resolves with the text of a reply 200. Not undici's request(): its objects live until a full garbage
 * collection, and copying them stopped the load generator for 20 to 45 ms every 4 s.
 */
function post(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let status = 0;
  const chunks: Buffer[] = [];
  dispatcher.dispatch(request, {
    onRequestStart: () => undefined,
    onResponseStart: (_, statusCode) => void (status = statusCode),
    onResponseData: (_, chunk) => void chunks.push(chunk),
    onResponseEnd() {
      const text = Buffer.concat(chunks).toString();
      if (status === 200) resolve(text);
      else reject(new Error(`${status}: ${text}`));
    },
    onResponseError: (_, error) => reject(error),
  });
  return promise;
}

/** Measures from the moment a call is due to the end of its reply. */
async function measurePosts(
  context: EventsContext,
  origin: string,
  perSecond: number,
  seconds: number,
  isGood: (text: string) => boolean,
): Promise<Delay> {
  const dispatcher = new Agent({ connections: 64, pipelining: 1 });
  const target = { origin, path: clearModel.path, method: 'POST', headers: context.headers } as const;
  try {
    return await measure(context, perSecond, seconds, async (id) => {
      const text = await post(dispatcher, { ...target, body: JSON.stringify({ model: 'webform', id }) });
      if (!isGood(text)) throw new Error(text);
    });
  } finally {
    await dispatcher.close();
  }
}

export const measureCalls = (context: EventsContext, perSecond: number, seconds: number): Promise<Delay> =>
  measurePosts(context, context.gateway, perSecond, seconds, (text) => text.includes('"keys_deleted":1'));

/** Measures calls to a bare Node server: the delay that the machine and the load generator cause. */
export const measureBare = (context: EventsContext, perSecond: number, seconds: number): Promise<Delay> =>
  measurePosts(context, context.bare, perSecond, seconds, () => true);
