-- Up Migration
-- A feed of deleted users, whose data each service erases. Positions follow the order of commits. They are times in
-- microseconds, so that after a restore of a backup new positions are above those that readers have reached.
CREATE TABLE auth.deleted_user (
  position bigint PRIMARY KEY,
  id bigint NOT NULL UNIQUE,
  deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The position up to which each reader has erased users at least once.
CREATE TABLE auth.deleted_user_reader (
  reader text PRIMARY KEY,
  position bigint NOT NULL
);

-- The position up to which auth's feed of deleted users was read, and their data was erased.
CREATE TABLE auth.deleted_user_position (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  after bigint NOT NULL
);
INSERT INTO auth.deleted_user_position (after) VALUES (0);

-- Deletes the persons of the audit log that belong to users who no longer exist. Entries keep the random subjects. Also
-- deletes IP addresses of senders who are not known as a user, if only entries about these users have them.
CREATE FUNCTION auth.erase_audit_persons(ids bigint[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE subjects uuid[];
BEGIN
  WITH deleted AS (
    DELETE FROM audit.person WHERE user_id = ANY (ids) AND NOT EXISTS (SELECT FROM auth.user WHERE id = person.user_id)
    RETURNING subject
  )
  SELECT array_agg(subject) INTO subjects FROM deleted;
  DELETE FROM audit.person WHERE user_id IS NULL
    AND subject IN (SELECT sender FROM audit.entry WHERE about = ANY (subjects))
    AND NOT EXISTS (SELECT FROM audit.entry WHERE sender = subject AND (about IS NULL OR about <> ALL (subjects)));
END $$;

-- Adds a user who does not exist any more to the feed.
CREATE FUNCTION auth.add_deleted_user(user_id bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM auth.user WHERE id = user_id) THEN RAISE 'the user % exists', user_id; END IF;
  -- The lock makes positions follow the order of commits.
  PERFORM pg_advisory_xact_lock(hashtext('auth.deleted_user'));
  INSERT INTO auth.deleted_user (position, id)
  SELECT greatest(coalesce(max(position), 0) + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), user_id
  FROM auth.deleted_user
  ON CONFLICT (id) DO UPDATE SET position = excluded.position, deleted_at = excluded.deleted_at;
  PERFORM auth.erase_audit_persons(ARRAY[user_id]);
END $$;

-- A trigger, so that no way of deleting a user can miss the feed: the previous release, or a statement of the owner.
CREATE FUNCTION auth.on_user_deleted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM auth.add_deleted_user(OLD.id);
  RETURN NULL;
END $$;
CREATE TRIGGER on_user_deleted AFTER DELETE ON auth.user FOR EACH ROW EXECUTE FUNCTION auth.on_user_deleted();

-- Makes new users get ids above this one. After a restore of a backup, ids of deleted users could otherwise be used again.
CREATE FUNCTION auth.reserve_user_ids(up_to bigint) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
  SELECT setval('auth.user_id_seq', up_to) FROM auth.user_id_seq WHERE last_value < up_to
$$;
