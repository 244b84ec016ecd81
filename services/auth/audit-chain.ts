import { type Logger, repeat } from '@content-platform/chassis';
import type { AuthDatabase } from './stores.ts';

const entriesPerTransaction = 500;

/**
 * Appends new audit entries to the hash chain every `everyMs`, in one of the running processes, and logs each. Returns a
 * function that stops this and resolves when the running transaction has ended.
 */
export function startAuditChain(
  { transaction }: Pick<AuthDatabase, 'transaction'>,
  logger: Logger,
  everyMs = 1_000,
): () => Promise<void> {
  /**
   * Returns the number of linked entries. Logs before the commit, so that after a crash an entry may be logged twice
   * but is never missing.
   */
  const link = () =>
    transaction(async ({ audit }) => {
      const entries = await audit.link(entriesPerTransaction);
      for (const entry of entries) logger.info({ audit: entry }, 'added an entry to the audit log');
      return entries.length;
    });

  async function linkAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await link()) === entriesPerTransaction);
  }
  return repeat(linkAll, {
    everyMs,
    logger,
    failure: 'audit entries were not linked; retrying every second',
  });
}
