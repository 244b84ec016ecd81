import type { Database, Logger } from '@content-platform/chassis';
import { signingKeyTimes } from './keys/key-rotation.ts';
import { createIdentityCodeStore } from './identity/code-store.ts';
import { createIdentityLoginStore } from './identity/login-store.ts';
import { forgetRevocations } from './sessions/revocations.ts';
import { createSessionStore } from './sessions/session-store.ts';
import { createSigningKeyStore } from './keys/signing-key-store.ts';

const everyMs = 3_600_000;

/** Deletes now and every hour what nobody will ask about any more. Returns what ends it. */
export function startUpkeep(query: Database['query'], logger: Logger): () => void {
  const steps: Record<string, () => Promise<unknown>> = {
    revocations: () => forgetRevocations(query),
    sessions: () => createSessionStore(query).forget(),
    'identity logins': () => createIdentityLoginStore(query).forget(),
    'identity codes': () => createIdentityCodeStore(query).forget(),
    'signing keys': () => createSigningKeyStore(query).forget(signingKeyTimes.kept),
    audit: () => query('delete_audit', `DELETE FROM auth.audit WHERE at < now() - interval '1 year'`),
  };

  /** Each by itself: one that is too slow keeps none of the others from their end. */
  async function tidy(): Promise<void> {
    for (const [rows, forget] of Object.entries(steps)) {
      await forget().catch((error: unknown) =>
        logger.warn({ error, rows }, 'old rows were not deleted; in an hour it is tried again'),
      );
    }
  }
  const timer = setInterval(() => void tidy(), everyMs);
  void tidy();
  return () => clearInterval(timer);
}
