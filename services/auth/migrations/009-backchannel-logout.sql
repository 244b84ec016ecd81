-- Up Migration
-- The session at the identity provider (`sid` of the ID token); NULL: the provider named none, or the session is older
-- than this migration
ALTER TABLE auth.session ADD COLUMN identity_sid text;
CREATE INDEX session_of_identity_sid ON auth.session (identity_issuer, identity_sid)
  WHERE ended_at IS NULL AND identity_sid IS NOT NULL;

-- Logout tokens that were used, by SHA-256 of issuer and `jti`: each is accepted once.
CREATE TABLE auth.logout_token (
  hash bytea PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX logout_token_created_at ON auth.logout_token (created_at);
