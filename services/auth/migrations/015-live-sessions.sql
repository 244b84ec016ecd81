-- Up Migration
-- Finds the live sessions of a user, among those that ended within 30 days: a script that logs in leaves thousands.
CREATE INDEX IF NOT EXISTS session_live ON auth.session (user_id, id) WHERE ended_at IS NULL;
