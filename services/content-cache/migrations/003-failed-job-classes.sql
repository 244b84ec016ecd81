-- Up Migration

-- Counting by class reads this alone: the jobs themselves are large.
CREATE INDEX failed_job_class ON content.failed_job (state, class, id) INCLUDE (failed_at, model);
