import { portOf } from '@content-platform/contract';
import { commonConfig, databaseUrl, readConfig, serviceSecret, tokenConfig } from '@content-platform/chassis';

export const devicesConfig = {
  ...commonConfig(portOf('devices')),
  ...tokenConfig,
  DATABASE_URL: databaseUrl,
  SERVICE_SECRET: serviceSecret,
};

/** Throws ConfigError. */
export function readDevicesConfig() {
  return readConfig(devicesConfig, process.env);
}
