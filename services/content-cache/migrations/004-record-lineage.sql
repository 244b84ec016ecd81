-- Up Migration

-- The versions under a key continue after a deletion: a new record gets a higher version than every earlier one. A
-- record that is deleted or gets another key is recorded in deleted_record.
ALTER TABLE content.deleted_record ADD COLUMN version bigint NOT NULL DEFAULT 0;

-- Runs with the owner's rights, because writers of records may not read this table.
CREATE OR REPLACE FUNCTION content.stamp_record() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog AS $$
DECLARE
  former bigint := 0;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    former := OLD.version;
  END IF;
  IF TG_OP = 'INSERT' OR (NEW.model, NEW.id) IS DISTINCT FROM (OLD.model, OLD.id) THEN
    former := greatest(former, (SELECT version FROM content.deleted_record WHERE model = NEW.model AND id = NEW.id));
  END IF;
  NEW.version := former + 1;
  NEW.updated_at := clock_timestamp();
  RETURN NEW;
END
$$;
REVOKE EXECUTE ON FUNCTION content.stamp_record() FROM PUBLIC;

CREATE OR REPLACE FUNCTION content.note_deleted_record() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog AS $$
BEGIN
  INSERT INTO content.deleted_record (model, id, deleted_at, version)
    VALUES (OLD.model, OLD.id, clock_timestamp(), OLD.version)
    ON CONFLICT (model, id) DO UPDATE SET deleted_at = excluded.deleted_at, version = excluded.version;
  RETURN NULL;
END
$$;
CREATE TRIGGER note_moved_record AFTER UPDATE OF model, id ON content.record
  FOR EACH ROW WHEN ((OLD.model, OLD.id) IS DISTINCT FROM (NEW.model, NEW.id))
  EXECUTE FUNCTION content.note_deleted_record();
