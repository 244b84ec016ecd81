-- Up Migration

-- What has been under a key goes on being known: whoever comes to it has a newer version than all that were there, and
-- whoever leaves it is noted, be it deleted or given another key.
ALTER TABLE content.deleted_record ADD COLUMN version bigint NOT NULL DEFAULT 0;

-- As its owner: who may write records may not read here.
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
