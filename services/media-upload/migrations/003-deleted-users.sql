-- Up Migration
-- The position up to which auth's feed of deleted users was read, and their data was erased.
CREATE TABLE media.deleted_user_position (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  after bigint NOT NULL
);
INSERT INTO media.deleted_user_position (after) VALUES (0);

-- Objects in the store that no row of media.file names: of uploads in progress (with their user), and of deleted files,
-- which wait to be removed from the store.
CREATE TABLE media.pending_object (
  object uuid PRIMARY KEY,
  store text NOT NULL,
  user_id bigint,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX pending_object_of_user ON media.pending_object (user_id);
