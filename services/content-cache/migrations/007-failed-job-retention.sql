-- Up Migration

-- Retried jobs are deleted 30 days later. The release before does not write this column: then the job's age counts.
ALTER TABLE content.failed_job ADD COLUMN retried_at timestamptz;
CREATE INDEX failed_job_retried ON content.failed_job (coalesce(retried_at, failed_at)) WHERE state = 'retried';
