import { z } from 'zod';
import { portOf } from '@content-platform/contract';
import { commonConfig, databaseUrl, integer, readConfig, redisUrl, url } from '@content-platform/chassis';
import { identityConfig, identitySettings } from './identity/settings.ts';

const message = 'a secret of 32 or more characters';
const passwordMinLength = integer(8, 64)
  .default(15)
  .describe('Fewest characters of a password that is chosen');
const keySecret = z.string(message).min(32, message);

export const authConfig = {
  ...commonConfig(portOf('auth')),
  DATABASE_URL: databaseUrl,
  REDIS_URL: redisUrl,
  AUTH_KEY_SECRET: keySecret.describe(
    'Encrypts the signing keys in the database; with another one the service does not start',
  ),
  PASSWORD_MIN_LENGTH: passwordMinLength,
  DEVICES_INTERNAL_URL: url('http:', 'https:')
    .optional()
    .describe(
      'The internal listener of the devices service, which a logout tells of its push token; without it none is told',
    ),
  ...identityConfig,
};

/** Throws ConfigError. */
export function readAuthConfig() {
  const config = readConfig(authConfig, process.env);
  return { ...config, identity: identitySettings(config) };
}

/** The setting of every admin command. Throws ConfigError. */
export const readDatabaseUrl = (): string =>
  readConfig({ DATABASE_URL: databaseUrl }, process.env).DATABASE_URL;

/** For create-user. Throws ConfigError. */
export const readPasswordMinLength = (): number =>
  readConfig({ PASSWORD_MIN_LENGTH: passwordMinLength }, process.env).PASSWORD_MIN_LENGTH;

/** For rotate-keys. Throws ConfigError. */
export const readKeySecret = (): string =>
  readConfig({ AUTH_KEY_SECRET: keySecret }, process.env).AUTH_KEY_SECRET;

/** For rotate-key-secret. Throws ConfigError. */
export const readNewKeySecret = (): string =>
  readConfig({ AUTH_KEY_SECRET_NEW: keySecret }, process.env).AUTH_KEY_SECRET_NEW;
