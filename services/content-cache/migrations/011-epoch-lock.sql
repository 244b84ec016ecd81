-- Up Migration
-- start_change_epoch waits for running writers, and later writers queue behind it. The caller repeats it.
ALTER FUNCTION content.start_change_epoch(uuid) SET lock_timeout = '200ms';
