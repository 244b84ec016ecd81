import type { RetentionSteps } from '@content-platform/chassis';
import { signingKeyTimes } from './keys/key-rotation.ts';
import { createStores } from './stores.ts';

/** The rows that expire, by the name that a failure to delete them has in the log. */
export const retention: RetentionSteps = (query) => {
  const stores = createStores(query);
  return {
    revocations: stores.revocations.deleteExpired,
    sessions: stores.sessions.deleteExpired,
    'identity logins': stores.identityLogins.deleteExpired,
    'identity codes': stores.identityCodes.deleteExpired,
    'signing keys': () => stores.signingKeys.deleteExpired(signingKeyTimes.kept),
    audit: stores.audit.deleteExpired,
  };
};
