import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Logger } from '@content-platform/chassis';
import { forgetAudit } from './audit.ts';
import { createIdentityCodeStore } from './identity/code-store.ts';
import { createIdentityLoginStore } from './identity/login-store.ts';
import { signingKeyTimes } from './keys/key-rotation.ts';
import { createSigningKeyStore } from './keys/signing-key-store.ts';
import { forgetRevocations } from './sessions/revocations.ts';
import { createSessionStore } from './sessions/session-store.ts';

/**
 * Deletes what nobody will ask about any more, until `signal` says stop: a backlog is many statements. What fails is in
 * the log, and keeps nothing else from its end.
 */
export async function tidy(ask: Database['query'], logger: Logger, signal: AbortSignal): Promise<void> {
  const query: Database['query'] = async (...statement) => {
    signal.throwIfAborted();
    return ask(...statement);
  };
  const steps: Record<string, () => Promise<void>> = {
    revocations: () => forgetRevocations(query),
    sessions: () => createSessionStore(query).forget(),
    'identity logins': () => createIdentityLoginStore(query).forget(),
    'identity codes': () => createIdentityCodeStore(query).forget(),
    'signing keys': () => createSigningKeyStore(query).forget(signingKeyTimes.kept),
    audit: () => forgetAudit(query),
  };
  for (const [rows, forget] of Object.entries(steps)) {
    await forget().catch((error: unknown) => {
      if (signal.aborted) return;
      logger.warn({ error, rows }, 'old rows were not deleted; in an hour it is tried again');
    });
  }
}

/** Tidies up now and every hour. Returns what ends it, after the statement that is under way. */
export function startUpkeep(
  query: Database['query'],
  logger: Logger,
  everyMs = 3_600_000,
): () => Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await tidy(query, logger, signal);
      await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  }
  const running = run();
  return () => {
    stopping.abort();
    return running;
  };
}
