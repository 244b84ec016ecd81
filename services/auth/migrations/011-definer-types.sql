-- Up Migration
-- These functions run with the owner's rights. PostgreSQL looks up types in pg_temp first unless the path names it, so
-- that a caller could run its own code as the owner with a temporary type named uuid or text.
ALTER FUNCTION audit.add() SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION auth.link_audit(integer) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION auth.check_audit_links(bigint, integer) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION auth.check_audit_entries(bigint, integer) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION auth.delete_expired_audit(integer) SET search_path = pg_catalog, pg_temp;
