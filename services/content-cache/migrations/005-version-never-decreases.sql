-- Up Migration

-- The version is above that of the record before the change, and above those that were deleted under its key.
-- enable_seqscan: the plan is kept for the session; one that was made while the table was nearly empty would read all
-- of it for each record.
CREATE OR REPLACE FUNCTION content.stamp_record() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $$
BEGIN
  NEW.version := 1 + greatest(0, OLD.version,
    (SELECT version FROM content.deleted_record WHERE model = NEW.model AND id = NEW.id));
  NEW.updated_at := clock_timestamp();
  RETURN NEW;
END
$$;

-- Before a record comes to a key, the deletion of the record that had the key may be uncommitted and so invisible.
-- After the insertion it is committed, because the primary key waits for it. An update then stamps the record again.
CREATE FUNCTION content.stamp_record_again() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $$
BEGIN
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    -- The snapshot of such a transaction may be older than the deletion. This conflict raises 40001 then, and the
    -- writer must repeat the transaction.
    INSERT INTO content.deleted_record (model, id, deleted_at) VALUES (NEW.model, NEW.id, clock_timestamp())
      ON CONFLICT DO NOTHING;
  END IF;
  IF EXISTS (SELECT FROM content.deleted_record
             WHERE model = NEW.model AND id = NEW.id AND version >= NEW.version) THEN
    UPDATE content.record SET version = version WHERE model = NEW.model AND id = NEW.id;
  END IF;
  RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION content.stamp_record_again() FROM PUBLIC;
CREATE TRIGGER stamp_inserted_record_again AFTER INSERT ON content.record
  FOR EACH ROW EXECUTE FUNCTION content.stamp_record_again();
CREATE TRIGGER stamp_moved_record_again AFTER UPDATE OF model, id ON content.record
  FOR EACH ROW WHEN ((OLD.model, OLD.id) IS DISTINCT FROM (NEW.model, NEW.id))
  EXECUTE FUNCTION content.stamp_record_again();
