-- Up Migration
ALTER TABLE auth.user
  -- NULL: none yet; a temporary password or the identity service lets the person in
  ALTER COLUMN password_hash DROP NOT NULL,
  ADD COLUMN temp_password_hash text,
  ADD COLUMN temp_password_expires_at timestamptz,
  ADD COLUMN temp_password_used_at timestamptz,
  -- the part of an organisation that the person has chosen at the identity service
  ADD COLUMN suborg text,
  ADD CHECK ((temp_password_hash IS NULL) = (temp_password_expires_at IS NULL));

CREATE TABLE auth.session (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES auth.user ON DELETE CASCADE,
  device text NOT NULL,
  address inet NOT NULL,
  must_change_password boolean NOT NULL,
  -- of the identity service, which wants it back at logout
  id_token text,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz NOT NULL DEFAULT now(),
  -- the latest it can last
  ends_at timestamptz NOT NULL,
  -- logged out or revoked
  ended_at timestamptz
);
CREATE INDEX session_of_user ON auth.session (user_id, id);
CREATE INDEX session_ends_at ON auth.session (ends_at);

-- Those that were replaced stay as long as their session: coming again they show that somebody else has one.
CREATE TABLE auth.refresh_token (
  hash bytea PRIMARY KEY,
  session_id bigint NOT NULL REFERENCES auth.session ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  replaced_at timestamptz
);
CREATE INDEX refresh_token_of_session ON auth.refresh_token (session_id);

-- What every process must refuse though it was signed. Ids are given in the order of commits.
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
  -- whom it was about; it outlives the user
  user_id bigint,
  actor text,
  address inet,
  details jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_of_user ON auth.audit (user_id, id);
CREATE INDEX audit_of_event ON auth.audit (event, id);
CREATE INDEX audit_at ON auth.audit (at);

-- What the service keeps to itself, sealed under AUTH_KEY_SECRET with the name as associated data.
CREATE TABLE auth.secret (
  name text PRIMARY KEY,
  sealed bytea NOT NULL
);

-- A key is published when it is made and signs from then on.
ALTER TABLE auth.signing_key ADD COLUMN signs_from timestamptz NOT NULL DEFAULT now();

-- Who somebody is at an identity service.
CREATE TABLE auth.identity (
  issuer text,
  subject text,
  user_id bigint NOT NULL REFERENCES auth.user ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX identity_of_user ON auth.identity (user_id);

-- A login that is under way at the identity service.
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

-- What the client changes into tokens after it.
CREATE TABLE auth.identity_code (
  hash bytea PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES auth.user ON DELETE CASCADE,
  code_challenge text NOT NULL,
  id_token text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
