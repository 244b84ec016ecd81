-- Up Migration
-- Finds the admins among millions of users. On such a table, create it beforehand with CREATE INDEX CONCURRENTLY.
CREATE INDEX IF NOT EXISTS user_admin ON auth.user (id) WHERE 'admin' = ANY (roles);
