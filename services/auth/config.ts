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

/** What the admin command needs of it. Throws ConfigError. */
export function readAdminConfig() {
  return readConfig({ DATABASE_URL: databaseUrl }, process.env);
}

/** What create-user needs beside. Throws ConfigError. */
export function readPasswordMinLength(): number {
  return readConfig({ PASSWORD_MIN_LENGTH: passwordMinLength }, process.env).PASSWORD_MIN_LENGTH;
}

/** What rotate-keys needs beside. Throws ConfigError. */
export function readKeySecret(): string {
  return readConfig({ AUTH_KEY_SECRET: keySecret }, process.env).AUTH_KEY_SECRET;
}

/** What rotate-key-secret needs beside. Throws ConfigError. */
export function readKeySecrets(): { current: string; next: string } {
  const shape = { AUTH_KEY_SECRET: keySecret, AUTH_KEY_SECRET_NEW: keySecret };
  const { AUTH_KEY_SECRET: current, AUTH_KEY_SECRET_NEW: next } = readConfig(shape, process.env);
  return { current, next };
}
