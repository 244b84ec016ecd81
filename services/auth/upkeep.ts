import type { UpkeepSteps } from '@content-platform/chassis';
import { forgetAudit } from './audit.ts';
import { createIdentityCodeStore } from './identity/code-store.ts';
import { createIdentityLoginStore } from './identity/login-store.ts';
import { signingKeyTimes } from './keys/key-rotation.ts';
import { createSigningKeyStore } from './keys/signing-key-store.ts';
import { forgetRevocations } from './sessions/revocations.ts';
import { createSessionStore } from './sessions/session-store.ts';

/** What auth keeps for a while only. */
export const upkeep: UpkeepSteps = (query) => ({
  revocations: () => forgetRevocations(query),
  sessions: () => createSessionStore(query).forget(),
  'identity logins': () => createIdentityLoginStore(query).forget(),
  'identity codes': () => createIdentityCodeStore(query).forget(),
  'signing keys': () => createSigningKeyStore(query).forget(signingKeyTimes.kept),
  audit: () => forgetAudit(query),
});
