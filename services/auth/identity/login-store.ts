import { statements, type Database } from '@content-platform/chassis';

/** Time in which a user must log in at the identity provider. */
export const loginSeconds = 600;

/** A login in progress at the identity provider. */
export interface IdentityLogin {
  browserHash: Buffer;
  nonce: string;
  /** Our verifier, sent to the identity provider. */
  codeVerifier: string;
  returnTo: string;
  clientState: string;
  /** The client's challenge, for our code. */
  codeChallenge: string;
}

/** Stores logins in progress by the SHA-256 of their state. All functions throw the errors of `query`. */
export function createIdentityLoginStore(query: Database['query']) {
  const { first, run } = statements(query);
  return {
    add(stateHash: Buffer, login: IdentityLogin) {
      const { browserHash, nonce, codeVerifier, returnTo, clientState, codeChallenge } = login;
      const text = `INSERT INTO auth.identity_login
          (state_hash, browser_hash, nonce, code_verifier, return_to, client_state, code_challenge)
        VALUES ($1, $2, $3, $4, $5, $6, $7)`;
      const values = [stateHash, browserHash, nonce, codeVerifier, returnTo, clientState, codeChallenge];
      return run('begin_identity_login', text, values);
    },

    /** Removes and returns the login of this state; undefined if there is none. */
    consume(stateHash: Buffer) {
      const text = `DELETE FROM auth.identity_login WHERE state_hash = $1
        RETURNING browser_hash AS "browserHash", nonce, code_verifier AS "codeVerifier", return_to AS "returnTo",
          client_state AS "clientState", code_challenge AS "codeChallenge",
          created_at < now() - make_interval(secs => $2) AS expired`;
      const values = [stateHash, loginSeconds];
      return first<IdentityLogin & { expired: boolean }>('take_identity_login', text, values);
    },
  };
}
