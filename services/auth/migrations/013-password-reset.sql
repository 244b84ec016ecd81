-- Up Migration
-- Requests for a new password, kept for a day because their number is limited. A request for an unknown email is stored
-- too, so that it takes equally long. There is no foreign key, because its check would wait for transactions that
-- change the user.
CREATE TABLE auth.password_reset (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- NULL: no user has the email
  user_id bigint,
  -- IP address that sent the request
  address inet NOT NULL,
  -- SHA-256 of the token in the link; NULL: it was used or cancelled
  token_hash bytea UNIQUE,
  -- the token, encrypted with the secret password_reset of auth.secret, until the mail was sent
  encrypted_token bytea,
  -- attempts to send the mail
  attempts integer NOT NULL DEFAULT 0,
  -- NULL: no attempt follows
  next_attempt_at timestamptz DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((encrypted_token IS NULL) = (next_attempt_at IS NULL))
);
CREATE INDEX password_reset_due ON auth.password_reset (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX password_reset_of_user ON auth.password_reset (user_id, created_at);
CREATE INDEX password_reset_created_at ON auth.password_reset (created_at);
