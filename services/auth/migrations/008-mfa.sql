-- Up Migration
-- The second factor of a user: a TOTP secret (RFC 6238).
CREATE TABLE auth.totp (
  user_id bigint PRIMARY KEY REFERENCES auth.user ON DELETE CASCADE,
  -- encrypted with the secret `totp` of auth.secret, with the user's id as associated data
  encrypted_secret bytea NOT NULL,
  -- NULL: enrolment has begun, and logins do not need a code yet
  confirmed_at timestamptz,
  -- the newest time step whose code was accepted, because each code is accepted once
  last_step bigint
);

-- SHA-256 of recovery codes that were not used yet.
CREATE TABLE auth.recovery_code (
  user_id bigint REFERENCES auth.totp ON DELETE CASCADE,
  hash bytea,
  PRIMARY KEY (user_id, hash)
);

-- Logins whose first factor was checked. One of the two hashes is what the password was checked against; both are NULL
-- after a login at the identity provider.
CREATE TABLE auth.mfa_login (
  token_hash bytea PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES auth.user ON DELETE CASCADE,
  password_hash text,
  temp_password_hash text,
  identity_issuer text,
  id_token text,
  suborgs text[],
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK (num_nonnulls(password_hash, temp_password_hash, identity_issuer) = 1)
);
CREATE INDEX mfa_login_of_user ON auth.mfa_login (user_id);
CREATE INDEX mfa_login_created_at ON auth.mfa_login (created_at);

-- Whether the identity provider's `amr` says that the login had a second factor.
ALTER TABLE auth.identity_code ADD COLUMN mfa boolean NOT NULL DEFAULT false;
