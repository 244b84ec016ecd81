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
 * Deletes now and every hour what nobody will ask about any more. Returns what ends it, after the statement that is under
 * way.
 */
export function startUpkeep(
  ask: Database['query'],
  logger: Logger,
  everyMs = 3_600_000,
): () => Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;
  /** A backlog is many statements: none of them begins when the process is about to stop. */
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

  /** Each by itself: one that fails keeps none of the others from their end. */
  async function tidy(): Promise<void> {
    for (const [rows, forget] of Object.entries(steps)) {
      await forget().catch((error: unknown) => {
        if (signal.aborted) return;
        logger.warn({ error, rows }, 'old rows were not deleted; in an hour it is tried again');
      });
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await tidy();
      await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  }
  const running = run();
  return () => {
    stopping.abort();
    return running;
  };
}
