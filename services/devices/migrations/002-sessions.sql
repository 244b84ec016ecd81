-- Up Migration
-- NULL: registered before this migration; the next registration of the device sets it
ALTER TABLE devices.device ADD COLUMN session_id bigint;
CREATE INDEX device_of_session ON devices.device (session_id);

-- Sessions that ended recently. A registration that was in progress at that time must not store its device.
CREATE TABLE devices.ended_session (
  session_id bigint PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ended_session_at ON devices.ended_session (at);

-- The position up to which auth's feed of ended sessions was read.
CREATE TABLE devices.ended_session_position (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  after bigint NOT NULL
);
INSERT INTO devices.ended_session_position (after) VALUES (0);
