-- Up Migration
-- Revocations of sessions stay for 30 days, for the services that keep data of a session. Finds those of the last
-- minutes, and old ones for their deletion.
CREATE INDEX revocation_at ON auth.revocation (at);
