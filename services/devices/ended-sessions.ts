import { z } from 'zod';
import { type Logger, repeat, type ServiceFetch } from '@content-platform/chassis';
import type { DeviceStore } from './device-store.ts';

const pollMs = 1_000;
const fetchTimeoutMs = 2_000;

const page = z.strictObject({
  sessions: z.array(z.strictObject({ id: z.int(), session_id: z.int() })),
  last: z.int(),
});

/** A page of auth's feed: the sessions that ended after the id `after`, and the newest id of the feed. */
export type EndedSessions = z.infer<typeof page>;

/** Fetches ended sessions from auth's internal listener at `url`. Rejects if auth is unavailable. */
export function fetchEndedSessionsFrom(url: string, fetchAsService: ServiceFetch) {
  return async (after: number): Promise<EndedSessions> => {
    const signal = AbortSignal.timeout(fetchTimeoutMs);
    const response = await fetchAsService(`${url}/ended-sessions?after=${after}`, {
      signal,
      redirect: 'error',
    });
    if (!response.ok) throw new Error(`${url}/ended-sessions answered ${response.status}`);
    return page.parse(await response.json());
  };
}

/**
 * Deletes the devices of sessions that end, within about a second, until the returned function is called. While auth or
 * PostgreSQL is unavailable it retries, and then continues where it was: auth keeps its feed for 30 days.
 */
export function followEndedSessions(
  fetchAfter: (after: number) => Promise<EndedSessions>,
  devices: Pick<DeviceStore, 'endedSessionPosition' | 'endSessions'>,
  logger: Logger,
): () => Promise<void> {
  /** Returns whether there may be more. */
  async function readOnce(): Promise<boolean> {
    const after = await devices.endedSessionPosition();
    let { sessions, last } = await fetchAfter(after);
    // Auth's database was restored from a backup, so that ids are used again.
    if (last < after) ({ sessions, last } = await fetchAfter(0));
    else if (sessions.length === 0) return false;
    await devices.endSessions(
      sessions.map(({ session_id: id }) => id),
      sessions.at(-1)?.id ?? last,
    );
    return (sessions.at(-1)?.id ?? last) < last;
  }

  async function readAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await readOnce()));
  }
  return repeat(readAll, {
    everyMs: pollMs,
    logger,
    failure: 'ended sessions not read; their devices stay until a retry succeeds',
  });
}
