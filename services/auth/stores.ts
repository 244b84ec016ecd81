import type { Database } from '@content-platform/chassis';
import { createAuditStore } from './audit-store.ts';
import { createClientStore } from './client-store.ts';
import { createDeletedUserStore } from './deleted-user-store.ts';
import { createIdentityCodeStore, createIdentityLoginStore, createIdentityStore } from './identity/stores.ts';
import { createSecretStore } from './keys/secret-store.ts';
import { createSigningKeyStore } from './keys/signing-key-store.ts';
import { createMfaStore } from './mfa/mfa-store.ts';
import { createResetStore } from './password-reset/reset-store.ts';
import { createRevocationStore } from './sessions/revocation-store.ts';
import { createSessionStore } from './sessions/session-store.ts';
import { createUserStore } from './user-store.ts';

export type Stores = ReturnType<typeof createStores>;

export function createStores(query: Database['query']) {
  return {
    users: createUserStore(query),
    deletedUsers: createDeletedUserStore(query),
    clients: createClientStore(query),
    sessions: createSessionStore(query),
    revocations: createRevocationStore(query),
    identities: createIdentityStore(query),
    identityLogins: createIdentityLoginStore(query),
    identityCodes: createIdentityCodeStore(query),
    signingKeys: createSigningKeyStore(query),
    secrets: createSecretStore(query),
    mfa: createMfaStore(query),
    passwordResets: createResetStore(query),
    audit: createAuditStore(query),
  };
}

export interface AuthDatabase extends Stores {
  /** Runs `work` on stores that share one transaction. Throws the errors of `work`, and 503. */
  transaction<T>(work: (stores: Stores) => Promise<T>): Promise<T>;
}

/** Creates the stores, both on pooled connections and in transactions. */
export function createAuthDatabase(database: Pick<Database, 'query' | 'transaction'>): AuthDatabase {
  return {
    ...createStores(database.query),
    transaction: (work) => database.transaction((query) => work(createStores(query))),
  };
}
