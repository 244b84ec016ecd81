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
CREATE INDEX letter_of_user ON letters.letter (user_id, id);
