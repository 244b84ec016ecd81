import type { FailedJobClass, Model } from '@content-platform/contract';
import { database, freshId } from './records.ts';

/** Creates a failed job of this class, whose event a retry can process, and returns the job's id. */
export async function newFailedJob(name: FailedJobClass, error = '', id = 1, model: Model = 'webform') {
  const value = Buffer.from(JSON.stringify({ model, id }));
  const { rows } = await database().query<{ id: string }>(
    `INSERT INTO content.failed_job (class, error, topic, "partition", "offset", key, value, model, message_at)
     VALUES ($1, $2, 'cache-invalidation', 0, $3, NULL, $4, $5, 0) RETURNING id`,
    [name, error, freshId(), value, model],
  );
  return Number(rows[0]!.id);
}
