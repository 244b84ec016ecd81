-- Up Migration
-- Deleted users, so that a deletion can be repeated after the platform's database was restored from an older backup.
CREATE TABLE logs.deleted_user (
  id bigint PRIMARY KEY,
  deleted_at timestamptz NOT NULL
);

-- The position up to which auth's feed of deleted users was read, and their data was erased.
CREATE TABLE logs.deleted_user_position (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  after bigint NOT NULL
);
INSERT INTO logs.deleted_user_position (after) VALUES (0);

-- On a table of millions of rows, create this index beforehand with CREATE INDEX CONCURRENTLY.
CREATE INDEX IF NOT EXISTS slow_request_user_id ON logs.slow_request (user_id);

-- Adds deleted users, and removes their ids from the slow log, which services may not change.
CREATE FUNCTION logs.erase_users(ids bigint[], times timestamptz[]) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO logs.deleted_user AS known SELECT * FROM unnest(ids, times)
  ON CONFLICT (id) DO UPDATE SET deleted_at = greatest(known.deleted_at, excluded.deleted_at);
  UPDATE logs.slow_request SET user_id = NULL WHERE user_id = ANY (ids::text[])
$$;
REVOKE EXECUTE ON FUNCTION logs.erase_users FROM PUBLIC;

-- Also deletes deleted users after 400 days, which is longer than backups are kept.
CREATE OR REPLACE FUNCTION logs.delete_expired(most integer) RETURNS bigint LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM logs.deleted_user WHERE deleted_at < now() - interval '400 days';
  WITH requests AS (
    DELETE FROM logs.slow_request WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM logs.slow_request WHERE at < now() - interval '30 days' LIMIT most FOR UPDATE SKIP LOCKED))
    RETURNING 1
  ), queries AS (
    DELETE FROM logs.slow_query WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM logs.slow_query WHERE at < now() - interval '30 days' LIMIT most FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT (SELECT count(*) FROM requests) + (SELECT count(*) FROM queries)
$$;
