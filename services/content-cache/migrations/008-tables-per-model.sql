-- Up Migration

-- One table per model, each with the key id: a partition of content.record. The change log, content.change, has one row
-- for each key, with the transaction of its last change. A reader remembers a snapshot and later takes the rows whose
-- transactions that snapshot did not see.
SET LOCAL lock_timeout = '5s';
LOCK TABLE content.record, content.deleted_record;
ALTER TABLE content.record RENAME TO record_old;
ALTER INDEX content.record_updated_at RENAME TO record_old_updated_at;
CREATE TABLE content.record (
  model text NOT NULL,
  -- up to 2^53-1, the largest integer that every JSON parser reads exactly
  id bigint NOT NULL CHECK (id BETWEEN 1 AND 9007199254740991),
  title text NOT NULL,
  body jsonb NOT NULL,
  version bigint NOT NULL,
  updated_at timestamptz NOT NULL,
  xid xid8 NOT NULL DEFAULT '1'
) PARTITION BY LIST (model);

-- Deleted keys, kept for 30 days. version: one more than that of the deleted record.
CREATE TABLE content.tombstone (
  model text,
  id bigint,
  version bigint NOT NULL,
  deleted_at timestamptz NOT NULL,
  xid xid8 NOT NULL DEFAULT '1',
  PRIMARY KEY (model, id)
);

-- What transaction ids belong to. A new server has another system identifier, a failover begins another timeline, and a
-- restored dump gives the table another oid.
CREATE FUNCTION content.origin() RETURNS text LANGUAGE sql STABLE AS $$
  SELECT format('%s/%s/%s', system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8),
    'content.record'::regclass::oid) FROM pg_control_system()
$$;

-- An epoch ends when transaction ids lose their meaning: after a restore, a failover or a TRUNCATE.
CREATE TABLE content.change_epoch (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  epoch uuid NOT NULL DEFAULT gen_random_uuid(),
  -- content.origin() when the epoch began
  origin text NOT NULL,
  -- the newest transaction of the tombstones that were removed
  purged xid8 NOT NULL DEFAULT '1',
  -- whether the cache was emptied in this epoch
  cleared boolean NOT NULL DEFAULT false,
  -- the changes that this snapshot sees were compared with the cache
  compared pg_snapshot NOT NULL DEFAULT pg_current_snapshot()
);
INSERT INTO content.change_epoch (origin) VALUES (content.origin());

-- Versions under a key grow, also after a deletion.
-- enable_seqscan: PostgreSQL keeps the plan for the session. A plan that was made while the table was nearly empty would
-- read the whole table for each record.
CREATE OR REPLACE FUNCTION content.stamp_record() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  former bigint := 0;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    former := OLD.version;
  END IF;
  IF TG_OP = 'INSERT' OR NEW.id <> OLD.id OR NEW.model <> OLD.model OR pg_trigger_depth() > 1 THEN
    former := greatest(former, (SELECT version FROM content.tombstone WHERE model = NEW.model AND id = NEW.id));
  END IF;
  NEW.version := former + 1;
  NEW.updated_at := clock_timestamp();
  NEW.xid := pg_current_xact_id();
  RETURN NEW;
END
$$;

-- Writes the tombstone of a key that a record leaves, and removes that of a key that a record takes.
CREATE FUNCTION content.track_key() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  former bigint;
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    UPDATE content.change_epoch SET epoch = gen_random_uuid(), cleared = false;
    RETURN NULL;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    INSERT INTO content.tombstone AS t (model, id, version, deleted_at, xid)
      VALUES (OLD.model, OLD.id, OLD.version + 1, clock_timestamp(), pg_current_xact_id())
      ON CONFLICT (model, id) DO UPDATE SET version = greatest(t.version + 1, excluded.version),
        deleted_at = excluded.deleted_at, xid = excluded.xid;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    IF current_setting('transaction_isolation') = 'read committed' THEN
      SELECT version INTO former FROM content.tombstone WHERE model = NEW.model AND id = NEW.id;
    ELSE
      -- The transaction's snapshot may be older than the deletion. Then this raises 40001, and the writer must repeat
      -- the transaction.
      INSERT INTO content.tombstone AS t (model, id, version, deleted_at) VALUES (NEW.model, NEW.id, 0, now())
        ON CONFLICT (model, id) DO UPDATE SET version = t.version RETURNING version INTO former;
    END IF;
    -- The deletion was not committed yet when stamp_record looked for it. The primary key has waited for it since.
    IF former >= NEW.version THEN
      UPDATE content.record SET version = 0 WHERE model = NEW.model AND id = NEW.id;
    END IF;
    IF former IS NOT NULL THEN
      DELETE FROM content.tombstone WHERE model = NEW.model AND id = NEW.id;
    END IF;
  END IF;
  RETURN NULL;
END
$$;

-- Begins an epoch if `seen` is still the current one. Transaction ids from the future belong to the former origin.
CREATE FUNCTION content.start_change_epoch(seen uuid) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE content.record, content.tombstone IN SHARE ROW EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT FROM content.change_epoch WHERE epoch = seen) THEN
    RETURN;
  END IF;
  ALTER TABLE content.record DISABLE TRIGGER USER;
  UPDATE content.record SET xid = '1' WHERE xid > pg_current_xact_id();
  ALTER TABLE content.record ENABLE TRIGGER USER;
  UPDATE content.tombstone SET xid = '1' WHERE xid > pg_current_xact_id();
  UPDATE content.change_epoch SET epoch = gen_random_uuid(), purged = '1', cleared = false,
    origin = content.origin();
END
$$;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA content FROM PUBLIC;

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['webform', 'pathway', 'accesscode', 'condition'] LOOP
    EXECUTE format('CREATE TABLE content.%1$I PARTITION OF content.record (model DEFAULT %1$L) FOR VALUES IN (%1$L);
      INSERT INTO content.%1$I SELECT * FROM content.record_old WHERE model = %1$L;
      ALTER TABLE content.%1$I ADD PRIMARY KEY (id)', name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY['record', 'webform', 'pathway', 'accesscode', 'condition'] LOOP
    EXECUTE format('CREATE TRIGGER truncated AFTER TRUNCATE ON content.%I EXECUTE FUNCTION content.track_key()', name);
  END LOOP;
END
$$;
INSERT INTO content.tombstone (model, id, version, deleted_at)
  SELECT model, id, version + 1, deleted_at FROM content.deleted_record AS d
  WHERE NOT EXISTS (SELECT FROM content.record AS r WHERE (r.model, r.id) = (d.model, d.id));

CREATE VIEW content.change AS
  SELECT model, id, version, false AS deleted, updated_at AS changed_at, xid FROM content.record
  UNION ALL SELECT model, id, version, true, deleted_at, xid FROM content.tombstone;

-- For processes of the previous release, which may run until the next one is in place.
CREATE INDEX record_updated_at ON content.record (updated_at);
ALTER TABLE content.deleted_record RENAME TO deleted_record_old;
CREATE VIEW content.deleted_record AS SELECT ctid, model, id, deleted_at, version FROM content.tombstone;
CREATE RULE keep_tombstones AS ON DELETE TO content.deleted_record DO INSTEAD NOTHING;

-- Roles with rights on the old tables get the same rights on the new ones.
DO $$
DECLARE
  granted record;
BEGIN
  FOR granted IN
    SELECT format('GRANT %s ON content.%I TO %s%s', acl.privilege_type, pair.new,
             CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END,
             CASE WHEN acl.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) AS statement
    FROM (VALUES ('record_old', 'record'), ('record_old', 'webform'), ('record_old', 'pathway'),
                 ('record_old', 'accesscode'), ('record_old', 'condition'),
                 ('deleted_record_old', 'deleted_record')) AS pair (old, new)
    JOIN pg_class AS old ON old.relname = pair.old AND old.relnamespace = 'content'::regnamespace
    CROSS JOIN aclexplode(old.relacl) AS acl
    WHERE acl.grantee <> old.relowner
  LOOP
    EXECUTE granted.statement;
  END LOOP;
END
$$;
DROP TABLE content.record_old, content.deleted_record_old;
DROP FUNCTION content.note_deleted_record(), content.stamp_record_again();

CREATE INDEX record_order ON content.record (xid, model, id);
CREATE INDEX tombstone_order ON content.tombstone (xid, model, id);
CREATE INDEX tombstone_deleted_at ON content.tombstone (deleted_at);
CREATE TRIGGER stamp_record BEFORE INSERT OR UPDATE ON content.record
  FOR EACH ROW EXECUTE FUNCTION content.stamp_record();
CREATE TRIGGER track_key AFTER INSERT OR DELETE ON content.record
  FOR EACH ROW EXECUTE FUNCTION content.track_key();
CREATE TRIGGER track_move AFTER UPDATE OF id ON content.record
  FOR EACH ROW WHEN (OLD.id <> NEW.id) EXECUTE FUNCTION content.track_key();
