-- Up Migration
CREATE TABLE devices.device (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL
);
