import {
  connectDatabase,
  type ConfigOf,
  type Database,
  type ErasureOptions,
  followDeletedUsers,
  migrateLogs,
  type ProcessContext,
  repeat,
} from '@content-platform/chassis';
import { services } from '@content-platform/contract/services';
import type { authConfig } from './config.ts';
import { createDeletedUserStore } from './deleted-user-store.ts';

const measureEveryMs = 10_000;
/** Rows of the slow log that one statement changes: a user can have millions, too many for its time limit. */
const rowsPerStatement = 10_000;

/** Erases deleted users from auth and the logs database, and measures how far each reader of the feed is. */
export function startErasure(service: ProcessContext<ConfigOf<typeof authConfig>>, query: Database['query']) {
  const { config, logger, metrics, onStop } = service;
  const { LOGS_DATABASE_URL: logsUrl } = config;
  const deletedUsers = createDeletedUserStore(query);
  const readers: string[] = services.filter(({ erasesUsers }) => erasesUsers).map(({ name }) => name);

  function follow(reader: string, options: ErasureOptions): void {
    readers.push(reader);
    const fetchPage = async (after: number) => {
      const { users: entries, last } = await deletedUsers.confirmAndList(after, reader);
      return { entries, last };
    };
    onStop(followDeletedUsers(fetchPage, options, logger));
  }

  follow('auth', { erase: deletedUsers.erase, query, schema: 'auth' });
  if (logsUrl !== undefined) {
    const logs = connectDatabase(service, logsUrl, { maxConnections: 1 });
    const stopping = new AbortController();
    let isMigrated = false;
    const queryLogs: Database['query'] = async (...statement) => {
      if (!isMigrated) await migrateLogs(logsUrl, logger, stopping.signal);
      isMigrated = true;
      stopping.signal.throwIfAborted();
      return logs.query(...statement);
    };
    follow('logs', {
      async erase(ids, users) {
        const times = users.map((user) => user.deleted_at);
        const text = 'SELECT logs.erase_users_in_batches($1, $2, $3)::int AS erased';
        const eraseSome = () =>
          queryLogs<{ erased: number }>('erase_logged_users', text, [ids, times, rowsPerStatement]);
        while ((await eraseSome()).rows[0]!.erased === rowsPerStatement);
      },
      query: queryLogs,
      schema: 'logs',
    });
    onStop(() => stopping.abort());
  }

  const lag = metrics.gauge(
    'erasure_lag_seconds',
    'Age of the oldest deletion of a user that a service has not carried out',
    'service',
  );
  async function measure(): Promise<void> {
    for (const { reader, seconds } of await deletedUsers.lagOf(readers))
      lag.set({ service: reader }, seconds);
  }
  const failure = 'the lag of erasures was not measured';
  onStop(repeat(measure, { everyMs: measureEveryMs, logger, failure }));
}
