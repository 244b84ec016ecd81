-- Up Migration
-- The function runs with the owner's rights. Unless the path names pg_temp, PostgreSQL looks up types there first, so that
-- a caller could run its own code as the owner.
ALTER FUNCTION logs.delete_expired(integer) SET search_path = pg_catalog, pg_temp;
