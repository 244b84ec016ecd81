-- Up Migration
-- Which store has its files (Store.name), so that nobody takes a row for a stray who looks into another one. A row from
-- before this column is of the store that the service uses at its next start.
ALTER TABLE media.file ADD COLUMN store text;
