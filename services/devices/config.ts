import { commonConfig, databaseUrl, readConfig, tokenConfig } from '@content-platform/chassis';

export const devicesConfig = {
  ...commonConfig(8084),
  ...tokenConfig,
  DATABASE_URL: databaseUrl,
};

/** Throws ConfigError. */
export function readDevicesConfig() {
  return readConfig(devicesConfig, process.env);
}
