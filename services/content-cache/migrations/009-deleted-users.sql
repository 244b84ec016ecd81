-- Up Migration
-- The position up to which auth's feed of deleted users was read, and their data was erased.
CREATE TABLE content.deleted_user_position (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  after bigint NOT NULL
);
INSERT INTO content.deleted_user_position (after) VALUES (0);

-- Finds the clears that a user requested. On a table of millions of rows, create this index beforehand with CREATE INDEX
-- CONCURRENTLY.
CREATE INDEX IF NOT EXISTS invalidation_of_user ON content.invalidation (requested_by) WHERE requested_by LIKE 'user:%';
