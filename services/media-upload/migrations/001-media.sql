-- Up Migration
CREATE TABLE media.file (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL,
  -- first part of the file's keys in the store
  object uuid NOT NULL UNIQUE,
  -- SHA-256 of the upload
  checksum bytea NOT NULL CHECK (length(checksum) = 32),
  mime text NOT NULL,
  bytes integer NOT NULL,
  name text NOT NULL,
  width integer,
  height integer,
  placeholder text,
  -- the served files: [{name, width, height, bytes}]
  variants jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (user_id, checksum)
);
CREATE INDEX file_user_id ON media.file (user_id, id DESC);
