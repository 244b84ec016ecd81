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

/** Reads the settings of the admin command. AUTH_INTERNAL_URL has no default: another auth would find the wrong user. */
export function readAdminConfig() {
  return readConfig({
    DATABASE_URL: databaseUrl,
    AUTH_INTERNAL_URL: url('http:', 'https:'),
    SERVICE_SECRET: serviceSecret,
  });
}
