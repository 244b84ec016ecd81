-- Up Migration
-- Emails are case-insensitive for A to Z only. For other letters the other case is another mailbox, whatever lower()
-- returns in this database's locale.
DROP INDEX auth.user_email;
CREATE UNIQUE INDEX user_email ON auth.user (lower(email COLLATE "C"));

-- Finds sessions that ended long ago, for their deletion.
DROP INDEX auth.session_ends_at;
CREATE INDEX session_over ON auth.session (least(ends_at, CASE WHEN identity_issuer IS NULL THEN ended_at END));

-- Finds the networks from which a machine client got tokens, with their times.
CREATE INDEX audit_of_client_use ON auth.audit (actor, at) WHERE event = 'client_token';
