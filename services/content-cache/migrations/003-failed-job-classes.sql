-- Up Migration

-- Counting by class reads only this index, because the jobs themselves are large.
CREATE INDEX failed_job_class ON content.failed_job (state, class, id) INCLUDE (failed_at, model);
