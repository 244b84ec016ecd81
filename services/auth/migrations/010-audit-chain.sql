-- Up Migration
-- The audit log moves into a schema that no service may use, so that no grant of any release lets a service change it.
-- Services read and add entries through the view auth.audit. Each entry gets a link in a hash chain (audit.link).
CREATE SCHEMA audit;

-- The only place with personal data. A row may be deleted at any time: entries keep the random subject id.
CREATE TABLE audit.person (
  subject uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id bigint,
  address inet,
  -- No entry names the subject since this time; new entries get another subject.
  unused_since timestamptz,
  CHECK (num_nonnulls(user_id, address) > 0)
);
CREATE INDEX person_of_user ON audit.person (user_id, address);
CREATE INDEX person_of_address ON audit.person (address) WHERE user_id IS NULL;
CREATE INDEX person_unused ON audit.person (unused_since) WHERE unused_since IS NOT NULL;

CREATE TABLE audit.entry (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  event text NOT NULL,
  -- subject of the user whom the entry is about
  about uuid,
  -- subject of the sender: the user, if any, and the IP address
  sender uuid,
  -- client:<name>, command, or user for the user of `sender`
  actor text,
  details jsonb NOT NULL
);

-- Link `seq` of the chain. It stays when its entry expires, so that the next links can still be checked.
CREATE TABLE audit.link (
  seq bigint PRIMARY KEY,
  entry_id bigint NOT NULL UNIQUE,
  at timestamptz NOT NULL,
  event text NOT NULL,
  entry_hash bytea NOT NULL,
  -- SHA-256 of the previous link's hash and of this link
  hash bytea NOT NULL
);

-- Entries without a link. A queue, because a chain that grows in the transactions of logins would serialize them.
CREATE TABLE audit.unlinked (entry_id bigint PRIMARY KEY);

CREATE FUNCTION audit.user_of(actor text) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN substring(actor FROM '^user:([0-9]{1,18})$')::bigint;

-- Copies the existing entries, while the previous release goes on writing.
INSERT INTO audit.person (user_id, address)
SELECT user_id, NULL FROM auth.audit WHERE user_id IS NOT NULL
UNION SELECT audit.user_of(actor), address FROM auth.audit WHERE num_nonnulls(audit.user_of(actor), address) > 0;
INSERT INTO audit.entry (id, at, event, about, sender, actor, details) OVERRIDING SYSTEM VALUE
SELECT id, at, event, about.subject, sender.subject,
  CASE WHEN audit.user_of(actor) IS NULL THEN actor ELSE 'user' END, details
FROM auth.audit AS old
LEFT JOIN audit.person AS about ON about.user_id = old.user_id AND about.address IS NULL
LEFT JOIN audit.person AS sender ON (coalesce(sender.user_id, 0), coalesce(sender.address, '0.0.0.0/0')) =
  (coalesce(audit.user_of(actor), 0), coalesce(old.address, '0.0.0.0/0'))
-- Leaves out entries whose subjects were added after the previous statement.
WHERE num_nulls(old.user_id, about.subject) <> 1
  AND (sender.subject IS NULL) = (num_nonnulls(audit.user_of(actor), old.address) = 0);
INSERT INTO audit.unlinked SELECT id FROM audit.entry;
CREATE INDEX entry_of_about ON audit.entry (about, id);
CREATE INDEX entry_of_sender ON audit.entry (sender);
CREATE INDEX entry_of_event ON audit.entry (event, id);
CREATE INDEX entry_at ON audit.entry (at);
CREATE INDEX entry_of_client_use ON audit.entry (actor, at) WHERE event = 'client_token';
ANALYZE audit.person, audit.entry;

-- Returns the subject of this user and address. Two transactions may create two subjects for the same person: waiting
-- for each other could deadlock.
CREATE FUNCTION audit.subject_of(of_user bigint, of_address inet) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE found uuid;
BEGIN
  IF of_user IS NULL AND of_address IS NULL THEN
    RETURN NULL;
  ELSIF of_user IS NULL THEN
    SELECT subject INTO found FROM audit.person
    WHERE user_id IS NULL AND address = of_address AND unused_since IS NULL LIMIT 1;
  ELSIF of_address IS NULL THEN
    SELECT subject INTO found FROM audit.person
    WHERE user_id = of_user AND address IS NULL AND unused_since IS NULL LIMIT 1;
  ELSE
    SELECT subject INTO found FROM audit.person
    WHERE user_id = of_user AND address = of_address AND unused_since IS NULL LIMIT 1;
  END IF;
  IF found IS NULL THEN
    INSERT INTO audit.person (user_id, address) VALUES (of_user, of_address) RETURNING subject INTO found;
  END IF;
  RETURN found;
END $$;

-- From this statement on, writers wait. Copies the entries that were added meanwhile.
LOCK TABLE auth.audit IN ACCESS EXCLUSIVE MODE;
WITH added AS (
  INSERT INTO audit.entry (id, at, event, about, sender, actor, details) OVERRIDING SYSTEM VALUE
  SELECT id, at, event, audit.subject_of(user_id, NULL), audit.subject_of(audit.user_of(actor), address),
    CASE WHEN audit.user_of(actor) IS NULL THEN actor ELSE 'user' END, details
  FROM auth.audit AS old WHERE NOT EXISTS (SELECT FROM audit.entry WHERE entry.id = old.id)
  RETURNING id
)
INSERT INTO audit.unlinked SELECT id FROM added;
SELECT setval('audit.entry_id_seq', nextval('auth.audit_id_seq'), false);

ALTER TABLE auth.audit RENAME TO audit_before_chain;
-- The columns before `about` are those of the table before, which the previous release and the runbooks use.
CREATE VIEW auth.audit AS
SELECT entry.id, entry.at, entry.event, about.user_id,
  CASE WHEN entry.actor = 'user' THEN coalesce('user:' || sender.user_id, 'user') ELSE entry.actor END AS actor,
  sender.address, entry.details, entry.about, entry.sender, entry.actor AS unnamed_actor
FROM audit.entry
LEFT JOIN audit.person AS about ON about.subject = entry.about
LEFT JOIN audit.person AS sender ON sender.subject = entry.sender;

-- Roles that could use the table can use the view, so that running processes never lack a right.
DO $$
DECLARE grantee regrole;
BEGIN
  FOR grantee IN
    SELECT acl.grantee FROM pg_class, aclexplode(relacl) AS acl
    WHERE oid = 'auth.audit_before_chain'::regclass AND privilege_type = 'INSERT' AND acl.grantee NOT IN (0, relowner)
  LOOP
    EXECUTE format('GRANT SELECT, INSERT ON auth.audit TO %s', grantee);
  END LOOP;
END $$;
DROP TABLE auth.audit_before_chain;

-- Adds an entry. The service chooses neither its id nor its time.
CREATE FUNCTION audit.add() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE user_id bigint := audit.user_of(NEW.actor);
BEGIN
  INSERT INTO audit.entry (event, about, sender, actor, details)
  VALUES (NEW.event, audit.subject_of(NEW.user_id, NULL), audit.subject_of(user_id, NEW.address),
    CASE WHEN user_id IS NULL THEN NEW.actor ELSE 'user' END, coalesce(NEW.details, '{}'))
  RETURNING id, at INTO NEW.id, NEW.at;
  INSERT INTO audit.unlinked VALUES (NEW.id);
  RETURN NEW;
END $$;
CREATE TRIGGER add INSTEAD OF INSERT ON auth.audit FOR EACH ROW EXECUTE FUNCTION audit.add();

CREATE FUNCTION audit.hash_of(entry audit.entry) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT sha256(convert_to(jsonb_build_array(entry.id, extract(epoch FROM entry.at), entry.event, entry.about,
    entry.sender, entry.actor, entry.details)::text, 'UTF8'))
$$;
CREATE FUNCTION audit.hash_of(previous_hash bytea, link audit.link) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT sha256(previous_hash || convert_to(jsonb_build_array(link.seq, link.entry_id, extract(epoch FROM link.at),
    link.event, encode(link.entry_hash, 'hex'))::text, 'UTF8'))
$$;

-- Machine clients request tokens all day; their entries would soon outnumber all others.
CREATE FUNCTION audit.is_expired(event text, at timestamptz) RETURNS boolean LANGUAGE sql STABLE
  RETURN at < now() - interval '30 days' AND (event = 'client_token' OR at < now() - interval '1 year');

-- Appends queued entries to the chain, in the order of their ids, and returns them. While another transaction appends,
-- returns none.
CREATE FUNCTION auth.link_audit(most integer)
RETURNS TABLE (seq bigint, hash text, id bigint, at timestamptz, event text, about uuid, sender uuid, actor text, details jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
  last audit.link;
  entry audit.entry;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext('audit.link')) THEN RETURN; END IF;
  SELECT * INTO last FROM audit.link ORDER BY link.seq DESC LIMIT 1;
  last.seq := coalesce(last.seq, 0);
  last.hash := coalesce(last.hash, '');
  FOR entry IN
    SELECT queued.* FROM audit.unlinked JOIN audit.entry AS queued ON queued.id = entry_id ORDER BY queued.id LIMIT most
  LOOP
    last.seq := last.seq + 1;
    last.entry_id := entry.id;
    last.at := entry.at;
    last.event := entry.event;
    last.entry_hash := audit.hash_of(entry);
    last.hash := audit.hash_of(last.hash, last);
    INSERT INTO audit.link SELECT last.*;
    DELETE FROM audit.unlinked WHERE entry_id = entry.id;
    RETURN QUERY SELECT last.seq, encode(last.hash, 'hex'), entry.id, entry.at, entry.event, entry.about, entry.sender,
      entry.actor, entry.details;
  END LOOP;
END $$;

-- Returns the links from `first` on, each with its fault; NULL: it fits to the previous link and to its entry.
CREATE FUNCTION auth.check_audit_links(first bigint, most integer) RETURNS TABLE (seq bigint, hash text, fault text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
  SELECT link.seq, encode(link.hash, 'hex'), CASE
    -- Deletion keeps one link that is older than a year.
    WHEN link.before IS NULL AND link.seq > 1 AND link.at > now() - interval '1 year' THEN 'links before it are missing'
    WHEN link.before < link.seq - 1 THEN 'links before it are missing'
    WHEN (link.before IS NOT NULL OR link.seq = 1)
      AND link.hash <> audit.hash_of(coalesce(link.hash_before, ''), link.whole) THEN 'it was changed'
    WHEN entry.id IS NULL AND NOT audit.is_expired(link.event, link.at) THEN 'its entry was deleted'
    WHEN entry.id IS NOT NULL AND audit.hash_of(entry) <> link.entry_hash THEN 'its entry was changed'
  END
  FROM (
    SELECT link AS whole, link.*, lag(link.seq) OVER (ORDER BY link.seq) AS before,
      lag(link.hash) OVER (ORDER BY link.seq) AS hash_before
    FROM audit.link WHERE link.seq >= first - 1 ORDER BY link.seq LIMIT most + 1
  ) AS link
  LEFT JOIN audit.entry ON entry.id = link.entry_id
  WHERE link.seq >= first
  ORDER BY link.seq
$$;

-- Returns the entries from id `first` on, and whether each is linked or queued. An expired entry may exist longer than
-- its link.
CREATE FUNCTION auth.check_audit_entries(first bigint, most integer) RETURNS TABLE (id bigint, queued boolean, linked boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
  SELECT entry.id, EXISTS (SELECT FROM audit.unlinked WHERE entry_id = entry.id),
    EXISTS (SELECT FROM audit.link WHERE entry_id = entry.id) OR audit.is_expired(entry.event, entry.at)
  FROM audit.entry WHERE entry.id >= first ORDER BY entry.id LIMIT most
$$;

-- Replaces the function of 007. Returns the number of deleted entries.
CREATE OR REPLACE FUNCTION auth.delete_expired_audit(most integer) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog AS $$
DECLARE
  subjects uuid[];
  entries bigint;
BEGIN
  WITH deleted AS (
    DELETE FROM audit.entry WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM audit.entry WHERE audit.is_expired(event, at) LIMIT most FOR UPDATE SKIP LOCKED))
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
