import { z } from 'zod';
import { exporters, internalUrlVariable, portOf, roles } from '@content-platform/contract';
import {
  commonConfig,
  databaseUrl,
  integer,
  list,
  readConfig,
  redisUrl,
  url,
} from '@content-platform/chassis';
import { identityConfig } from './identity/settings.ts';
import { mailConfig } from './password-reset/settings.ts';
import { readBlocklist } from './passwords/blocklist.ts';

const keySecretForm = 'a secret of 32 or more characters';
const passwordMinLength = integer(8, 64)
  .default(15)
  .describe('Minimum length of passwords in characters, 8 to 64');
const serviceSecretsForm = 'pairs of a service and its secret of 32 or more characters, <name>:<secret>';
const blocklistFile = z
  .string()
  .optional()
  .describe(
    'Path of a file of passwords that are refused: on each line a password or its SHA-1 in hex, as in the files of Have I Been Pwned; at most 1,000,000 lines and 64 MB; unset: none',
  );
const keySecret = z.string(keySecretForm).min(32, keySecretForm);

const internalUrl = (name: string, details: string) =>
  url('http:', 'https:').optional().describe(`URL of the internal listener of ${name}${details}`);
const ifUnset = '; unset: exports return 503';
type ExporterUrl = ReturnType<typeof internalUrlVariable<(typeof exporters)[number]['name']>>;
const exporterUrls = Object.fromEntries(
  exporters.map(({ name }) => [internalUrlVariable(name), internalUrl(name, ifUnset)]),
) as Record<ExporterUrl, ReturnType<typeof internalUrl>>;

export const authConfig = {
  ...commonConfig(portOf('auth')),
  DATABASE_URL: databaseUrl,
  REDIS_URL: redisUrl,
  AUTH_KEY_SECRET: keySecret.describe(
    'Secret that encrypts the signing keys, and the keys of second factors and refresh tokens, in the database, at least 32 characters; auth does not start with a secret that cannot decrypt them',
  ),
  SERVICE_SECRETS: list(z.string().regex(/^[a-z-]+:[\w-]{32,}$/, serviceSecretsForm))
    .default([])
    .describe(
      'SERVICE_SECRET of each service that gets tokens for internal listeners, `<name>:<secret>`, separated by commas',
    ),
  PASSWORD_MIN_LENGTH: passwordMinLength,
  MFA_REQUIRED_ROLES: list(z.enum(roles, `roles of ${roles.join(', ')}, separated by commas`))
    .default([])
    .describe(
      'Roles whose users must set up a second factor before they can do anything else: `user`, `sre` or `admin`, separated by commas',
    ),
  PASSWORD_BLOCKLIST_FILE: blocklistFile,
  ...exporterUrls,
  DEVICES_INTERNAL_URL: internalUrl(
    'devices',
    ', which removes a push token at logout; unset: only the device of the session is removed, and exports return 503',
  ),
  ...identityConfig,
  ...mailConfig,
};

export const blocklistIn = (path: string | undefined) =>
  path === undefined ? undefined : readBlocklist(path);

/** Reads the settings of the admin commands. All of them throw ConfigError. */
export const readDatabaseUrl = () => readConfig({ DATABASE_URL: databaseUrl }).DATABASE_URL;
export const readLogsDatabaseUrl = () => readConfig({ LOGS_DATABASE_URL: databaseUrl }).LOGS_DATABASE_URL;
export const readKeySecret = () => readConfig({ AUTH_KEY_SECRET: keySecret }).AUTH_KEY_SECRET;
export const readNewKeySecret = () => readConfig({ AUTH_KEY_SECRET_NEW: keySecret }).AUTH_KEY_SECRET_NEW;
export function readPasswordConfig() {
  const config = readConfig({
    PASSWORD_MIN_LENGTH: passwordMinLength,
    PASSWORD_BLOCKLIST_FILE: blocklistFile,
  });
  return { minLength: config.PASSWORD_MIN_LENGTH, blocklist: blocklistIn(config.PASSWORD_BLOCKLIST_FILE) };
}
