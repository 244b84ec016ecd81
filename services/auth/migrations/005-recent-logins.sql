-- Up Migration
-- NULL: the session was authenticated at created_at only
ALTER TABLE auth.session ADD COLUMN reauthenticated_at timestamptz;

-- The email of the latest login at the identity provider; NULL: no login since this migration
ALTER TABLE auth.identity
  ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  ADD COLUMN email text,
  ADD COLUMN email_verified boolean;
