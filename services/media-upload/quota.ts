import { type Database, HttpError } from '@content-platform/chassis';

/** Limits of one user's files; Infinity: no limit. `bytes` includes the variants. */
export interface Quota {
  bytes: number;
  files: number;
}

/** Converts the settings MEDIA_QUOTA_MB (1,000,000 bytes) and MEDIA_QUOTA_FILES; 0: no limit. */
export function quotaOf(config: { MEDIA_QUOTA_MB: number; MEDIA_QUOTA_FILES: number }): Quota {
  const { MEDIA_QUOTA_MB: megabytes, MEDIA_QUOTA_FILES: files } = config;
  return { bytes: megabytes ? megabytes * 1_000_000 : Infinity, files: files || Infinity };
}

/** Throws 413 if one more file of `bytes` would exceed the user's quota. Sums a thousand files in a few milliseconds. */
export async function checkQuota(
  query: Database['query'],
  { userId, bytes }: { userId: number; bytes: number },
  quota: Quota,
): Promise<void> {
  if (quota.bytes === Infinity && quota.files === Infinity) return;
  // The variants of a PDF are the original itself.
  const text = `SELECT count(*)::float8 AS files, coalesce(sum(bytes + (
                  SELECT coalesce(sum((variant ->> 'bytes')::bigint), 0) FROM jsonb_array_elements(variants) AS variant
                  WHERE variant ->> 'name' <> 'original')), 0)::float8 AS bytes
                FROM media.file WHERE user_id = $1`;
  const used = (await query<{ files: number; bytes: number }>('sum_files', text, [userId])).rows[0]!;
  if (used.files + 1 <= quota.files && used.bytes + bytes <= quota.bytes) return;
  const limits = [
    ...(quota.files < Infinity ? [`${quota.files} files`] : []),
    ...(quota.bytes < Infinity ? [`${quota.bytes / 1_000_000} MB`] : []),
  ];
  throw new HttpError('quota_exceeded', `A user may store ${limits.join(' and ')}. Delete files first.`);
}
