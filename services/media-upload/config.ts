import { z } from 'zod';
import { portOf } from '@content-platform/contract';
import {
  commonConfig,
  databaseUrl,
  integer,
  readConfig,
  serviceSecret,
  tokenConfig,
  url,
} from '@content-platform/chassis';

/** The settings of the file store. */
export const storeConfig = {
  MEDIA_FOLDER: z
    .string()
    .min(1)
    .default('media')
    .describe('Folder of uploaded files; with S3, of uploads in progress only'),
  S3_BUCKET: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'the name of a bucket')
    .optional()
    .describe('S3 bucket of uploaded files; unset: files are stored in MEDIA_FOLDER'),
  S3_ENDPOINT: url('http:', 'https:')
    .optional()
    .describe('URL of the S3 server; unset: Amazon S3 in S3_REGION'),
  S3_REGION: z.string().min(1).default('us-east-1').describe('S3 region of the bucket'),
  S3_ACCESS_KEY_ID: z
    .string()
    .min(1)
    .optional()
    .describe('S3 access key ID with rights to list the bucket and to read, write and delete its objects'),
  S3_SECRET_ACCESS_KEY: z.string().min(1).optional().describe('S3 secret access key of S3_ACCESS_KEY_ID'),
};

export const mediaUploadConfig = {
  ...commonConfig(portOf('media-upload')),
  ...tokenConfig,
  DATABASE_URL: databaseUrl,
  SERVICE_SECRET: serviceSecret,
  ...storeConfig,
  MEDIA_QUOTA_MB: integer(0, 10_000_000)
    .default(1_000)
    .describe(
      'Megabytes (1,000,000 bytes) that each user may store, with all variants, 0 to 10,000,000; 0: no limit',
    ),
  MEDIA_QUOTA_FILES: integer(0, 10_000_000)
    .default(1_000)
    .describe('Files that each user may store, 0 to 10,000,000; 0: no limit'),
};

/** Reads the settings of the admin commands. Throws ConfigError. */
export const readAdminConfig = () => readConfig({ DATABASE_URL: databaseUrl, ...storeConfig });
