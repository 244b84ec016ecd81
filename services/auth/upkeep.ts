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
  async function tidy(): Promise<void> {
    try {
      await forgetRevocations(query);
      await createSessionStore(query).forget();
      await createIdentityLoginStore(query).forget();
      await createIdentityCodeStore(query).forget();
      await createSigningKeyStore(query).forget(signingKeyTimes.kept);
      await query('delete_audit', `DELETE FROM auth.audit WHERE at < now() - interval '1 year'`);
    } catch (error) {
      logger.warn({ error }, 'old rows were not deleted; in an hour it is tried again');
    }
  }
  const timer = setInterval(() => void tidy(), everyMs);
  void tidy();
  return () => clearInterval(timer);
}
