import { Readable } from 'node:stream';
import {
  createSemaphore,
  HttpError,
  jsonArray,
  type ServiceFetch,
  unavailable,
  withTimeout,
} from '@content-platform/chassis';

/** Limits in ms: for a free slot, the response heads of all services, and the whole export, also for a slow client. */
const usual = { waitMs: 5_000, beginMs: 5_000, exportMs: 300_000 };
const [maxRunning, maxWaiting] = [4, 20];

export type PersonalData = ReturnType<typeof createPersonalData>;

/** `urls`: fields of the export, each with the internal listener of its service; if one is undefined, exports fail. */
export function createPersonalData(
  urls: Readonly<Record<string, string | undefined>>,
  fetchAsService: ServiceFetch,
  { waitMs, beginMs, exportMs } = usual,
) {
  const slots = createSemaphore(maxRunning, maxWaiting);
  /** The users whose export runs or waits. A user who reads slowly must not hold more than one slot. */
  const exporting = new Set<number>();

  async function open(url: string | undefined, userId: number, signal: AbortSignal) {
    const response = await fetchAsService(`${url}/export?user_id=${userId}`, { signal });
    if (response.status !== 200) throw new Error(`${url}/export returned ${response.status}`);
    return response.body!;
  }

  async function begin(user: { id: number }, sessions: AsyncIterable<object>, signal: AbortSignal) {
    const opening = Object.entries(urls).map(
      async ([name, url]) => [name, await open(url, user.id, signal)] as const,
    );
    const opened = await withTimeout(Promise.all(opening), beginMs);
    if (!opened) throw new Error(`a service did not reply within ${beginMs} ms`);
    return (async function* () {
      yield `{"user":${JSON.stringify(user)},"sessions":`;
      yield* jsonArray(sessions);
      for (const [name, body] of opened) {
        yield `,"${name}":`;
        yield* body;
      }
      yield '}';
    })();
  }

  return {
    /**
     * Throws 429 while an export of the user runs, and 503. After a later failure the stream fails, so that the reply is cut
     * off and does not look complete.
     */
    async export(user: { id: number }, sessions: AsyncIterable<object>, disconnected: AbortSignal) {
      if (exporting.has(user.id)) {
        const message = 'Another export of your data is running. Retry later.';
        throw new HttpError('rate_limited', message, { headers: { 'Retry-After': '5' } });
      }
      exporting.add(user.id);
      const end = new AbortController();
      const signal = AbortSignal.any([disconnected, end.signal, AbortSignal.timeout(exportMs)]);
      let release = () => {};
      const finish = () => {
        exporting.delete(user.id);
        release();
        end.abort();
      };
      try {
        release = await slots.acquire(AbortSignal.any([disconnected, AbortSignal.timeout(waitMs)]));
        const stream = Readable.from(await begin(user, sessions, signal), { signal });
        // The client may disconnect before the stream is sent. createService logs later failures.
        stream.once('error', () => undefined);
        return stream.once('close', finish);
      } catch (error) {
        finish();
        if (error instanceof HttpError) throw error;
        throw unavailable('A part of the data is unavailable. Retry later.', error);
      }
    },
  };
}
