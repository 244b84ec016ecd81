import { portOf } from '@content-platform/contract';
import {
  commonConfig,
  databaseUrl,
  readConfig,
  serviceSecret,
  tokenConfig,
  url,
} from '@content-platform/chassis';

export const lettersConfig = {
  ...commonConfig(portOf('letters')),
  ...tokenConfig,
  DATABASE_URL: databaseUrl,
  SERVICE_SECRET: serviceSecret,
};

/**
 * Reads the settings of the admin command. AUTH_INTERNAL_URL has no default, because the auth service of another
 * installation would return the wrong user. Throws ConfigError.
 */
export function readAdminConfig() {
  const shape = {
    DATABASE_URL: databaseUrl,
    AUTH_INTERNAL_URL: url('http:', 'https:'),
    SERVICE_SECRET: serviceSecret,
  };
  return readConfig(shape);
}
