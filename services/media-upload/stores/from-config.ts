import { join } from 'node:path';
import { ConfigError, type ConfigOf } from '@content-platform/chassis';
import type { storeConfig } from '../config.ts';
import { createLocalFolderStore } from './local-folder.ts';
import type { Store } from './store.ts';

/** Returns the bucket if one is configured, otherwise the folder. Throws ConfigError if S3 is only partly configured. */
export async function storeFromConfig(config: ConfigOf<typeof storeConfig>): Promise<Store> {
  const { S3_BUCKET, S3_ENDPOINT, S3_REGION, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY } = config;
  const needed = { S3_BUCKET, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY };
  const given = Object.values({ ...needed, S3_ENDPOINT }).some((value) => value !== undefined);
  if (!given) return createLocalFolderStore(join(config.MEDIA_FOLDER, 'files'));
  for (const [name, value] of Object.entries(needed)) {
    if (value === undefined) {
      throw new ConfigError(`${name} is not set; S3 needs all of ${Object.keys(needed).join(', ')}`);
    }
  }
  // The SDK needs as much memory as the rest of the service, so it is loaded on demand.
  const { createS3Store } = await import('./s3.ts');
  return createS3Store({
    bucket: S3_BUCKET!,
    endpoint: S3_ENDPOINT,
    region: S3_REGION,
    accessKeyId: S3_ACCESS_KEY_ID!,
    secretAccessKey: S3_SECRET_ACCESS_KEY!,
  });
}
