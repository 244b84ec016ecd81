-- Up Migration
-- Finds rows without a store at each start. On a table of millions of rows, create it beforehand CONCURRENTLY.
CREATE INDEX IF NOT EXISTS file_without_store ON media.file (id) WHERE store IS NULL;
