-- Up Migration

-- The service may add entries to the audit log, but neither change nor delete them. This function deletes old entries with
-- the owner's rights. It takes no times, so that a caller cannot delete newer entries. It deletes some of them at a time
-- and returns their number.
CREATE FUNCTION auth.delete_expired_audit(most integer) RETURNS bigint LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog AS $$
  WITH deleted AS (
    DELETE FROM auth.audit WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM auth.audit
      WHERE at < now() - interval '30 days' AND (event = 'client_token' OR at < now() - interval '1 year')
      LIMIT most FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT count(*) FROM deleted
$$;
