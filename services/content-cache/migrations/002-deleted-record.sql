-- Up Migration

-- The deleted records, for the process that compares the cache with the records; kept for a day.
CREATE TABLE content.deleted_record (
  model text NOT NULL,
  id bigint NOT NULL,
  deleted_at timestamptz NOT NULL,
  PRIMARY KEY (model, id)
);
CREATE INDEX deleted_record_deleted_at ON content.deleted_record (deleted_at);

-- Runs with the owner's rights, because roles that may delete records may not write this table.
CREATE FUNCTION content.note_deleted_record() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog AS $$
BEGIN
  INSERT INTO content.deleted_record VALUES (OLD.model, OLD.id, clock_timestamp())
    ON CONFLICT (model, id) DO UPDATE SET deleted_at = excluded.deleted_at;
  RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION content.note_deleted_record() FROM PUBLIC;
CREATE TRIGGER note_deleted_record AFTER DELETE ON content.record
  FOR EACH ROW EXECUTE FUNCTION content.note_deleted_record();
