import { portOf } from '@content-platform/contract';
import { commonConfig, databaseUrl, readConfig, tokenConfig } from '@content-platform/chassis';

export const devicesConfig = {
  ...commonConfig(portOf('devices')),
  ...tokenConfig,
  DATABASE_URL: databaseUrl,
};

/** Throws ConfigError. */
export function readDevicesConfig() {
  return readConfig(devicesConfig, process.env);
}
