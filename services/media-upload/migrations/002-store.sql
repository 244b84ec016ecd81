-- Up Migration
-- The store that has the row's files (Store.name), so that a sweep of another store does not delete the row. Rows from
-- before this column are assigned to the store of the service's next start.
ALTER TABLE media.file ADD COLUMN store text;
