-- Up Migration
-- The position up to which auth's feed of deleted users was read, and their data was erased.
CREATE TABLE devices.deleted_user_position (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  after bigint NOT NULL
);
INSERT INTO devices.deleted_user_position (after) VALUES (0);
