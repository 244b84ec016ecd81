import { deleteExpired, type Database } from '@content-platform/chassis';

/** How long a user may take to log in at the identity service. */
export const loginSeconds = 600;

/** A login in progress at the identity service. */
export interface IdentityLogin {
  browserHash: Buffer;
  nonce: string;
  /** Our own, for the identity service. */
  codeVerifier: string;
  returnTo: string;
  clientState: string;
  /** Of the client, for our code. */
  codeChallenge: string;
}

export type IdentityLoginStore = ReturnType<typeof createIdentityLoginStore>;

/** Logins in progress, each with the SHA-256 of its state. Everything throws what `query` throws. */
export function createIdentityLoginStore(query: Database['query']) {
  return {
    async begin(stateHash: Buffer, login: IdentityLogin): Promise<void> {
      const { browserHash, nonce, codeVerifier, returnTo, clientState, codeChallenge } = login;
      const text = `INSERT INTO auth.identity_login
          (state_hash, browser_hash, nonce, code_verifier, return_to, client_state, code_challenge)
        VALUES ($1, $2, $3, $4, $5, $6, $7)`;
      const values = [stateHash, browserHash, nonce, codeVerifier, returnTo, clientState, codeChallenge];
      await query('begin_identity_login', text, values);
    },

    /** Removes and returns the login of this state; undefined if there is none. */
    async take(stateHash: Buffer): Promise<(IdentityLogin & { expired: boolean }) | undefined> {
      const text = `DELETE FROM auth.identity_login WHERE state_hash = $1
        RETURNING browser_hash AS "browserHash", nonce, code_verifier AS "codeVerifier", return_to AS "returnTo",
          client_state AS "clientState", code_challenge AS "codeChallenge",
          created_at < now() - make_interval(secs => $2) AS expired`;
      const values = [stateHash, loginSeconds];
      return (await query<IdentityLogin & { expired: boolean }>('take_identity_login', text, values)).rows[0];
    },

    /** Deletes logins that were begun over an hour ago. Until then the reply says that they have expired. */
    async deleteExpired(): Promise<void> {
      const old = `created_at < now() - interval '1 hour'`;
      await deleteExpired(query, 'delete_identity_logins', 'auth.identity_login', old);
    },
  };
}
