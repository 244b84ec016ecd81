-- Up Migration
-- Addresses are one in either case of A to Z. Beyond that another case is another mailbox, whatever lower() makes of it
-- in this database's locale.
DROP INDEX auth.user_email;
CREATE UNIQUE INDEX user_email ON auth.user (lower(email COLLATE "C"));

-- What is over for long is found by this when it is deleted.
DROP INDEX auth.session_ends_at;
CREATE INDEX session_over ON auth.session (least(ends_at, CASE WHEN identity_issuer IS NULL THEN ended_at END));

-- Where a machine client has come from, and when.
CREATE INDEX audit_of_client_use ON auth.audit (actor, at) WHERE event = 'client_token';
