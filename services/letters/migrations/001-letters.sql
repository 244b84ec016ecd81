-- Up Migration
CREATE TABLE letters.letter (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL,
  title text NOT NULL,
  state text NOT NULL CHECK (state IN ('draft', 'open', 'sent', 'closed')),
  version bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX letter_user_id ON letters.letter (user_id, id);

CREATE TABLE letters.webform (
  letter_id bigint REFERENCES letters.letter ON DELETE CASCADE,
  webform_id bigint,
  required boolean NOT NULL,
  -- null: the webform is not skipped
  skipped_at timestamptz,
  reason text,
  PRIMARY KEY (letter_id, webform_id),
  CHECK (skipped_at IS NULL OR NOT required),
  CHECK (reason IS NULL OR skipped_at IS NOT NULL)
);

CREATE TABLE letters.history (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  letter_id bigint NOT NULL REFERENCES letters.letter ON DELETE CASCADE,
  at timestamptz NOT NULL,
  event text NOT NULL,
  actor text NOT NULL,
  -- json keeps the order of its fields
  details json NOT NULL
);
CREATE INDEX history_letter_id ON letters.history (letter_id, id);
