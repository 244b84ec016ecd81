-- Up Migration
CREATE TABLE idempotency_key (
  caller text,
  endpoint text,
  key text,
  fingerprint text NOT NULL,
  -- the attempt that holds the key; replies of an abandoned earlier attempt are ignored
  run uuid NOT NULL,
  held_until timestamptz NOT NULL,
  -- null while the request is in progress; json, because it keeps the order of fields, so that the repeated reply is
  -- identical
  reply json,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (caller, endpoint, key)
);
CREATE INDEX idempotency_key_created_at ON idempotency_key (created_at);
