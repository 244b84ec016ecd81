-- Up Migration

-- A topic has one open events_lost job at most: each process that notices a loss clears everything, and in a rebalance
-- several processes notice the same loss. Of several open jobs the newest stays open.
LOCK TABLE content.failed_job IN SHARE ROW EXCLUSIVE MODE;
UPDATE content.failed_job AS job SET state = 'retried'
  WHERE class = 'events_lost' AND state = 'open'
    AND EXISTS (SELECT FROM content.failed_job AS newer WHERE newer.class = 'events_lost' AND newer.state = 'open'
                AND newer.topic = job.topic AND newer.id > job.id);
CREATE UNIQUE INDEX failed_job_lost ON content.failed_job (topic) WHERE class = 'events_lost' AND state = 'open';
