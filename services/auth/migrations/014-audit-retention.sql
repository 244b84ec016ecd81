-- Up Migration
-- Replaces the function of 010, which read every entry that is older than 30 days: among tens of millions it exceeded
-- the time limit, and nothing expired. Each ORDER BY is that of an index. Returns the number of deleted entries.
CREATE OR REPLACE FUNCTION auth.delete_expired_audit(most integer) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  subjects uuid[];
  entries bigint;
BEGIN
  WITH deleted AS (
    DELETE FROM audit.entry WHERE ctid = ANY (
      ARRAY(SELECT ctid FROM audit.entry WHERE at < now() - interval '1 year'
        ORDER BY at LIMIT most FOR UPDATE SKIP LOCKED)
      || ARRAY(SELECT ctid FROM audit.entry WHERE event = 'client_token' AND at < now() - interval '30 days'
        ORDER BY actor, at LIMIT most FOR UPDATE SKIP LOCKED))
    RETURNING about, sender
  )
  SELECT count(*), array_agg(about) || array_agg(sender) INTO entries, subjects FROM deleted;
  -- In two steps, because a running transaction may have read the subject for an entry that is not visible yet.
  UPDATE audit.person SET unused_since = now() WHERE subject = ANY (subjects) AND unused_since IS NULL
    AND NOT EXISTS (SELECT FROM audit.entry WHERE subject IN (about, sender));
  DELETE FROM audit.person WHERE unused_since < now() - interval '1 hour'
    AND NOT EXISTS (SELECT FROM audit.entry WHERE about = subject)
    AND NOT EXISTS (SELECT FROM audit.entry WHERE sender = subject);
  DELETE FROM audit.link WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM audit.link WHERE seq < coalesce(
      (SELECT seq FROM audit.link WHERE at >= now() - interval '1 year' ORDER BY seq LIMIT 1) - 1,
      (SELECT max(seq) FROM audit.link))
    ORDER BY seq LIMIT most FOR UPDATE SKIP LOCKED));
  RETURN entries;
END $$;
