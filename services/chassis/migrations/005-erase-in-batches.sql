-- Up Migration
-- Replaces erase_users, whose statement took too long for a user with hundreds of thousands of slow requests. Processes of
-- the previous release still call erase_users. Adds deleted users, removes their ids from up to `most` rows of the slow
-- log, and returns the number of these rows: call it until it returns less than `most`.
CREATE FUNCTION logs.erase_users_in_batches(ids bigint[], times timestamptz[], most integer) RETURNS bigint LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO logs.deleted_user AS known SELECT * FROM unnest(ids, times)
  ON CONFLICT (id) DO UPDATE SET deleted_at = greatest(known.deleted_at, excluded.deleted_at);
  WITH erased AS (
    UPDATE logs.slow_request SET user_id = NULL WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM logs.slow_request WHERE user_id = ANY (ids::text[]) LIMIT most FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT count(*) FROM erased
$$;
REVOKE EXECUTE ON FUNCTION logs.erase_users_in_batches FROM PUBLIC;
