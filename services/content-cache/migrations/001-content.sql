-- Up Migration
CREATE TABLE content.record (
  model text NOT NULL CHECK (model IN ('webform', 'pathway', 'accesscode', 'condition')),
  -- up to 2^53-1, the largest integer that every JSON parser reads exactly
  id bigint NOT NULL CHECK (id BETWEEN 1 AND 9007199254740991),
  title text NOT NULL,
  body jsonb NOT NULL,
  version bigint NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (model, id)
);
CREATE INDEX record_updated_at ON content.record (updated_at);

-- Sets version and updated_at at each change, whatever the writer puts into these columns.
CREATE FUNCTION content.stamp_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.version := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE OLD.version + 1 END;
  NEW.updated_at := clock_timestamp();
  RETURN NEW;
END
$$;
CREATE TRIGGER stamp_record BEFORE INSERT OR UPDATE ON content.record
  FOR EACH ROW EXECUTE FUNCTION content.stamp_record();

-- Events that could not be processed. Key and value are stored as bytes, because they may be invalid.
CREATE TABLE content.failed_job (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  class text NOT NULL,
  error text NOT NULL,
  topic text NOT NULL,
  "partition" integer NOT NULL,
  "offset" bigint NOT NULL,
  key bytea,
  value bytea,
  -- the broker's time of the message in ms since 1970; bigint, because producers can set any number
  message_at bigint NOT NULL,
  -- the model that the event names, if the platform has it
  model text,
  state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'retried')),
  attempts integer NOT NULL DEFAULT 1,
  failed_at timestamptz NOT NULL DEFAULT now(),
  -- A redelivered event is stored once; a recreated topic counts its offsets from 0 again, at another time.
  UNIQUE (topic, "partition", "offset", message_at)
);
CREATE INDEX failed_job_open ON content.failed_job (attempts, id) WHERE state = 'open';

-- Refused clears that wait to be carried out, one row for each target.
CREATE TABLE content.pending_clear (
  -- each request for the target sets a new value, so that a running clear removes only the request that it has carried
  -- out
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  model text NOT NULL,
  -- null: every record of the model, the pattern `<model>:*`
  record_id bigint,
  requested_by text NOT NULL,
  source text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX pending_clear_target ON content.pending_clear (model, coalesce(record_id, 0));

-- A log of the clears, kept for 30 days.
CREATE TABLE content.invalidation (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  source text NOT NULL,
  -- a client, `user:<id>`, or `<topic>/<partition>/<offset>`
  requested_by text NOT NULL,
  -- `<model>:<id>` or `<model>:*`
  target text NOT NULL,
  keys_deleted bigint NOT NULL
);
CREATE INDEX invalidation_at ON content.invalidation (at);
CREATE INDEX invalidation_target ON content.invalidation (target, at);

-- Roles belong to the whole server, so the content server's role may exist already for another database.
DO $$
BEGIN
  CREATE ROLE content_server NOLOGIN;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN NULL;
  WHEN insufficient_privilege THEN
    RAISE NOTICE 'Not allowed to create the role content_server: create it, then grant it what this migration names.';
END
$$;
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'content_server') THEN
    GRANT USAGE ON SCHEMA content TO content_server;
    -- SELECT is needed too, because UPDATE … WHERE and RETURNING read rows.
    GRANT SELECT, INSERT, UPDATE, DELETE ON content.record TO content_server;
  END IF;
END
$$;
