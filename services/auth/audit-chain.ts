import { type Logger, repeat } from '@content-platform/chassis';
import type { AuthDatabase } from './stores.ts';

const entriesPerTransaction = 500;

/** Appends new audit entries to the hash chain and logs each. Returns a function that stops this. */
export function startAuditChain(
  { transaction }: Pick<AuthDatabase, 'transaction'>,
  logger: Logger,
  everyMs = 1_000,
): () => Promise<void> {
  /** Adds entries to the chain. Logs before the commit: after a crash the log may repeat entries, but lacks none. */
  const link = () =>
    transaction(async ({ audit }) => {
      const entries = await audit.link(entriesPerTransaction);
      for (const entry of entries) logger.info({ audit: entry }, 'added an entry to the audit log');
      return entries.length;
    });

  async function linkAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await link()) === entriesPerTransaction);
  }
  const failure = 'audit entries were not linked; retrying every second';
  return repeat(linkAll, { everyMs, logger, failure });
}
