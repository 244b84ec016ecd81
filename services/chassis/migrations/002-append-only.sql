-- Up Migration

-- The services may add rows, but not change or delete them. This function deletes rows older than 30 days with the
-- owner's rights, some of them at a time, and returns their number.
CREATE FUNCTION logs.delete_expired(most integer) RETURNS bigint LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog AS $$
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
