-- Up Migration
-- The position up to which auth's feed of deleted users was read, and their data was erased.
CREATE TABLE letters.deleted_user_position (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  after bigint NOT NULL
);
INSERT INTO letters.deleted_user_position (after) VALUES (0);

-- Finds the changes of a deleted user to letters of other users. On a table of millions of rows, create this index
-- beforehand with CREATE INDEX CONCURRENTLY.
CREATE INDEX IF NOT EXISTS history_actor ON letters.history (actor);
