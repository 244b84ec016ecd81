import { z } from 'zod';
import { commonConfig, databaseUrl, readConfig } from '@content-platform/chassis';

const keySecret = 'a secret of 32 or more characters';

export const authConfig = {
  ...commonConfig(8081),
  DATABASE_URL: databaseUrl,
  AUTH_KEY_SECRET: z
    .string(keySecret)
    .min(32, keySecret)
    .describe('Encrypts the signing keys in the database; with another one the service does not start'),
};

/** Throws ConfigError. */
export function readAuthConfig() {
  return readConfig(authConfig, process.env);
}

/** What the admin command needs of it. Throws ConfigError. */
export function readAdminConfig() {
  return readConfig({ DATABASE_URL: databaseUrl }, process.env);
}
