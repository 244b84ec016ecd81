import { z } from 'zod';
import { commonConfig, databaseUrl, readConfig, tokenConfig } from '@content-platform/chassis';

export const mediaUploadConfig = {
  ...commonConfig(8083),
  ...tokenConfig,
  DATABASE_URL: databaseUrl,
  MEDIA_FOLDER: z.string().min(1).default('media').describe('Folder of the uploaded files'),
};

/** Throws ConfigError. */
export function readMediaUploadConfig() {
  return readConfig(mediaUploadConfig, process.env);
}
