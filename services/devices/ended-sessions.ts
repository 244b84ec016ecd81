import { z } from 'zod';
import {
  type FetchPage,
  fetchFeedFrom,
  followFeed,
  type Logger,
  type ServiceFetch,
} from '@content-platform/chassis';
import type { DeviceStore } from './device-store.ts';

const page = z
  .object({ sessions: z.array(z.object({ id: z.int(), session_id: z.int() })), last: z.int() })
  .transform(({ sessions, last }) => ({
    entries: sessions.map(({ id, session_id }) => ({ position: id, sessionId: session_id })),
    last,
  }));

type EndedSession = { sessionId: number };

/** Fetches ended sessions from auth's internal listener at `url`. Rejects if auth is unavailable. */
export const fetchEndedSessionsFrom = (url: string, fetchAsService: ServiceFetch): FetchPage<EndedSession> =>
  fetchFeedFrom(`${url}/ended-sessions`, page, fetchAsService);

/** Deletes the devices of ended sessions within about a second, until the returned function is called. */
export function followEndedSessions(
  fetchPage: FetchPage<EndedSession>,
  devices: Pick<DeviceStore, 'endedSessionPosition' | 'endSessions'>,
  logger: Logger,
): () => Promise<void> {
  return followFeed({
    fetchPage,
    position: devices.endedSessionPosition,
    apply(entries, position) {
      const ids = entries.map(({ sessionId }) => sessionId);
      return devices.endSessions(ids, position);
    },
    failure: 'ended sessions not read; their devices stay until a retry succeeds',
    logger,
    everyMs: 1_000,
  });
}
