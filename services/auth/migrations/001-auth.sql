-- Up Migration
CREATE TABLE auth.user (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  email text NOT NULL,
  name text NOT NULL,
  -- argon2id, or bcrypt for an imported user who has not logged in yet
  password_hash text NOT NULL,
  roles text[] NOT NULL CHECK (cardinality(roles) > 0 AND roles <@ ARRAY['user', 'sre', 'admin']),
  disabled boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX user_email ON auth.user (lower(email));

CREATE TABLE auth.client (
  name text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9-]{0,63}$'),
  secret_hash text NOT NULL,
  scopes text[] NOT NULL,
  disabled boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE auth.signing_key (
  kid text PRIMARY KEY,
  public_jwk jsonb NOT NULL,
  -- sealed with AES-256-GCM under AUTH_KEY_SECRET, with the kid as associated data
  sealed_private_key bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
