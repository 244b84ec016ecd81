import { until } from './wait.ts';

/** Does `work` in a transaction, which stays open and keeps its locks until the returned function is called. */
export async function holdOpen<Query>(
  { transaction }: { transaction: (work: (query: Query) => Promise<void>) => Promise<void> },
  work: (query: Query) => Promise<unknown>,
): Promise<() => Promise<void>> {
  const done = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const running = transaction(async (query) => {
    await work(query);
    done.resolve();
    await end.promise;
  });
  await Promise.race([done.promise, running]);
  return () => {
    end.resolve();
    return running;
  };
}

/** Waits until another transaction is blocked by a lock. */
export async function untilBlocked({
  query,
}: {
  query: (operation: string, text: string) => Promise<{ rowCount: number | null }>;
}): Promise<void> {
  const text = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
  await until('a statement waits for a lock', async () => (await query('find_waiting', text)).rowCount! > 0);
}
