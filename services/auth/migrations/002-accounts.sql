-- Up Migration
ALTER TABLE auth.user
  -- NULL: no own password yet; the user logs in with a temporary password or at the identity provider
  ALTER COLUMN password_hash DROP NOT NULL,
  ADD COLUMN temp_password_hash text,
  ADD COLUMN temp_password_expires_at timestamptz,
  ADD COLUMN temp_password_used_at timestamptz,
  -- the part of an organisation that the user has chosen at the identity provider
  ADD COLUMN suborg text,
  ADD CHECK ((temp_password_hash IS NULL) = (temp_password_expires_at IS NULL));

CREATE TABLE auth.session (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES auth.user ON DELETE CASCADE,
  device text NOT NULL,
  address inet NOT NULL,
  must_change_password boolean NOT NULL,
  -- the login at an identity provider: its issuer, the ID token for the logout, and the suborgs that the user may
  -- choose
  identity_issuer text,
  id_token text,
  suborgs text[],
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz NOT NULL DEFAULT now(),
  -- the maximum lifetime ends at this time
  ends_at timestamptz NOT NULL,
  -- logged out or revoked
  ended_at timestamptz,
  CHECK (num_nonnulls(identity_issuer, id_token, suborgs) IN (0, 3))
);
CREATE INDEX session_of_user ON auth.session (user_id, id);
CREATE INDEX session_ends_at ON auth.session (ends_at);

-- Replaced tokens stay as long as their session: later reuse is treated as theft.
CREATE TABLE auth.refresh_token (
  hash bytea PRIMARY KEY,
  session_id bigint NOT NULL REFERENCES auth.session ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  replaced_at timestamptz
);
CREATE INDEX refresh_token_of_session ON auth.refresh_token (session_id);

-- Revocations of tokens whose signatures remain valid. Ids follow the order of commits.
CREATE TABLE auth.revocation (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_id bigint,
  client text,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK (num_nonnulls(session_id, client) = 1)
);

CREATE TABLE auth.audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  event text NOT NULL,
  -- the user whom the entry is about; the entry outlives the user
  user_id bigint,
  actor text,
  address inet,
  details jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_of_user ON auth.audit (user_id, id);
CREATE INDEX audit_of_event ON auth.audit (event, id);
CREATE INDEX audit_at ON auth.audit (at);

-- Secrets of the service, sealed with AUTH_KEY_SECRET and the name as associated data.
CREATE TABLE auth.secret (
  name text PRIMARY KEY,
  sealed bytea NOT NULL
);

-- Existing keys sign from the time of this migration on.
ALTER TABLE auth.signing_key ADD COLUMN signs_from timestamptz NOT NULL DEFAULT now();

-- Links users to subjects at identity providers.
CREATE TABLE auth.identity (
  issuer text,
  subject text,
  user_id bigint NOT NULL REFERENCES auth.user ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (issuer, subject),
  -- a user has at most one subject at each provider
  UNIQUE (user_id, issuer)
);

-- Logins in progress at the identity provider.
CREATE TABLE auth.identity_login (
  state_hash bytea PRIMARY KEY,
  browser_hash bytea NOT NULL,
  nonce text NOT NULL,
  code_verifier text NOT NULL,
  return_to text NOT NULL,
  client_state text NOT NULL,
  code_challenge text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX identity_login_created_at ON auth.identity_login (created_at);

-- One-time codes that the client exchanges for tokens after a login at the identity provider.
CREATE TABLE auth.identity_code (
  hash bytea PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES auth.user ON DELETE CASCADE,
  code_challenge text NOT NULL,
  issuer text NOT NULL,
  id_token text NOT NULL,
  suborgs text[] NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- used codes stay for a while: a second use ends the session that the first use opened
  used_at timestamptz,
  session_id bigint REFERENCES auth.session ON DELETE SET NULL
);
CREATE INDEX identity_code_of_user ON auth.identity_code (user_id);
CREATE INDEX identity_code_of_session ON auth.identity_code (session_id);
CREATE INDEX identity_code_created_at ON auth.identity_code (created_at);
