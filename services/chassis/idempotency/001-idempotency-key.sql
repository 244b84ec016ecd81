-- Up Migration
CREATE TABLE idempotency_key (
  caller text,
  endpoint text,
  key text,
  fingerprint text NOT NULL,
  -- who carries it out; what comes from an earlier one that was given up does not count any more
  run uuid NOT NULL,
  held_until timestamptz NOT NULL,
  -- null while it is under way; json keeps the order of fields: the reply is the same to the byte
  reply json,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (caller, endpoint, key)
);
CREATE INDEX idempotency_key_created_at ON idempotency_key (created_at);
