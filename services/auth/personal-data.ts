import { Readable } from 'node:stream';
import {
  createSemaphore,
  HttpError,
  jsonArray,
  type Logger,
  type ServiceFetch,
  unavailable,
  withTimeout,
} from '@content-platform/chassis';

/** Time limits in ms: for a free slot, for the begin of all lists, and for the whole export, even if the client reads slowly. */
const usual = { waitMs: 5_000, beginMs: 5_000, exportMs: 300_000 };
const [maxRunning, maxWaiting] = [4, 20];

export type PersonalData = ReturnType<typeof createPersonalData>;

/**
 * Creates the export of personal data. `lists`: the fields of the export that other services send, and the internal
 * listeners of these services; without one of them every export fails.
 */
export function createPersonalData(
  lists: Readonly<Record<string, string | undefined>>,
  fetchAsService: ServiceFetch,
  logger: Logger,
  { waitMs, beginMs, exportMs } = usual,
) {
  const slots = createSemaphore(maxRunning, maxWaiting);

  async function open(url: string | undefined, userId: number, signal: AbortSignal) {
    const response = await fetchAsService(`${url}/export?user_id=${userId}`, { signal });
    if (response.status !== 200) throw new Error(`${url}/export answered ${response.status}`);
    return response.body!;
  }

  async function begin(user: { id: number }, sessions: AsyncIterable<object>, signal: AbortSignal) {
    const opening = Object.entries(lists).map(
      async ([name, url]) => [name, await open(url, user.id, signal)] as const,
    );
    const opened = await withTimeout(Promise.all(opening), beginMs);
    if (!opened) throw new Error(`a service did not answer within ${beginMs} ms`);
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
     * Returns the export as JSON. Throws 503 if a service is unavailable, or too many exports run. If a service fails later,
     * or the time limit passes, the stream fails, so that the reply is cut off and does not look complete.
     */
    async export(
      user: { id: number },
      sessions: AsyncIterable<object>,
      hangUp: AbortSignal,
    ): Promise<Readable> {
      const end = new AbortController();
      const signal = AbortSignal.any([hangUp, end.signal, AbortSignal.timeout(exportMs)]);
      let release = () => {};
      try {
        release = await slots.acquire(AbortSignal.any([hangUp, AbortSignal.timeout(waitMs)]));
        const stream = Readable.from(await begin(user, sessions, signal), { signal });
        stream.once('error', (error) => {
          if (!hangUp.aborted) logger.warn({ error }, 'export cut off; the client got an incomplete reply');
        });
        return stream.once('close', () => {
          release();
          end.abort();
        });
      } catch (error) {
        release();
        end.abort();
        if (error instanceof HttpError) throw error;
        throw unavailable('A part of the data is unavailable. Retry later.', error);
      }
    },
  };
}
