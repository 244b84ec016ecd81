-- Up Migration
-- Finds the replies about a user, for their deletion. Replies are deleted after a day, so the table stays small.
CREATE INDEX IF NOT EXISTS idempotency_key_user ON idempotency_key ((reply #>> '{reply,body,user_id}'));
