import type { Database, Logger } from '@content-platform/chassis';
import { forgetRevocations } from './revocations.ts';
import { createSessionStore } from './session-store.ts';

const everyMs = 3_600_000;

/** Deletes now and every hour what nobody will ask about any more. Returns what ends it. */
export function startUpkeep(query: Database['query'], logger: Logger): () => void {
  async function tidy(): Promise<void> {
    try {
      await forgetRevocations(query);
      await createSessionStore(query).forget();
      await query('delete_audit', `DELETE FROM auth.audit WHERE at < now() - interval '1 year'`);
    } catch (error) {
      logger.warn({ error }, 'old rows were not deleted; in an hour it is tried again');
    }
  }
  const timer = setInterval(() => void tidy(), everyMs);
  void tidy();
  return () => clearInterval(timer);
}
