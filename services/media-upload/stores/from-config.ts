import { join } from 'node:path';
import { areAllSet, ConfigError, type ConfigOf } from '@content-platform/chassis';
import type { storeConfig } from '../config.ts';
import { createLocalFolderStore } from './local-folder.ts';
import type { Store } from './store.ts';

/** Returns the bucket if one is configured, otherwise the folder. Throws ConfigError if S3 is only partly configured. */
export async function storeFromConfig(config: ConfigOf<typeof storeConfig>): Promise<Store> {
  if (!areAllSet(config, ['S3_BUCKET', 'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'])) {
    if (config.S3_ENDPOINT === undefined) return createLocalFolderStore(join(config.MEDIA_FOLDER, 'files'));
    throw new ConfigError('S3_BUCKET is not set, but S3_ENDPOINT is; set both or none');
  }
  // The SDK needs as much memory as the rest of the service, so it is loaded on demand.
  const { createS3Store } = await import('./s3.ts');
  return createS3Store({
    bucket: config.S3_BUCKET,
    endpoint: config.S3_ENDPOINT,
    region: config.S3_REGION,
    accessKeyId: config.S3_ACCESS_KEY_ID,
    secretAccessKey: config.S3_SECRET_ACCESS_KEY,
  });
}
