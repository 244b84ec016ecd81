import { deleteExpired, type RetentionSteps } from '@content-platform/chassis';
import { createStores } from './stores.ts';

/** Deletes expired rows. The log of a failed deletion names its step. */
export const retention: RetentionSteps = (query) => {
  const { revocations, sessions, signingKeys, audit, deletedUsers } = createStores(query);
  const deleteOlder = (operation: string, table: string, interval: string) =>
    deleteExpired(query, operation, table, `created_at < now() - interval '${interval}'`);
  return {
    revocations: revocations.deleteExpired,
    sessions: sessions.deleteExpired,
    // Until then a late callback gets the error "took too long", and a code that is used again ends its session.
    'identity logins': () => deleteOlder('delete_identity_logins', 'auth.identity_login', '1 hour'),
    'identity codes': () => deleteOlder('delete_identity_codes', 'auth.identity_code', '1 day'),
    // A logout token is refused when it is six minutes old.
    'logout tokens': () => deleteOlder('delete_logout_tokens', 'auth.logout_token', '1 hour'),
    'unfinished logins': () => deleteOlder('delete_mfa_logins', 'auth.mfa_login', '1 hour'),
    'password resets': () => deleteOlder('delete_password_resets', 'auth.password_reset', '1 day'),
    'signing keys': signingKeys.deleteExpired,
    audit: audit.deleteExpired,
    'deleted users': deletedUsers.deleteExpired,
  };
};
