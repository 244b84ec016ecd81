-- Up Migration
-- After a restore into another cluster, each record has a transaction id from the future. One call rewrites at most
-- 10,000 records, so that writers wait briefly and no time limit ends the call. The caller repeats it until the epoch
-- has begun.
CREATE OR REPLACE FUNCTION content.start_change_epoch(seen uuid) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE content.record, content.tombstone IN SHARE ROW EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT FROM content.change_epoch WHERE epoch = seen) THEN
    RETURN;
  END IF;
  ALTER TABLE content.record DISABLE TRIGGER USER;
  UPDATE content.record AS r SET xid = '1'
    FROM (SELECT model, id FROM content.record WHERE xid > pg_current_xact_id() LIMIT 10000) AS old
    WHERE (r.model, r.id) = (old.model, old.id);
  ALTER TABLE content.record ENABLE TRIGGER USER;
  UPDATE content.tombstone AS t SET xid = '1'
    FROM (SELECT model, id FROM content.tombstone WHERE xid > pg_current_xact_id() LIMIT 10000) AS old
    WHERE (t.model, t.id) = (old.model, old.id);
  IF EXISTS (SELECT FROM content.change WHERE xid > pg_current_xact_id()) THEN
    RETURN;
  END IF;
  UPDATE content.change_epoch SET epoch = gen_random_uuid(), purged = '1', cleared = false,
    origin = content.origin();
END
$$;
