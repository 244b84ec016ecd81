-- Up Migration
CREATE TABLE media.file (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL
);
