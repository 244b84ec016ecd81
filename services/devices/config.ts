import { portOf } from '@content-platform/contract';
import { commonConfig, databaseUrl, serviceSecret, tokenConfig } from '@content-platform/chassis';

export const devicesConfig = {
  ...commonConfig(portOf('devices')),
  ...tokenConfig,
  DATABASE_URL: databaseUrl,
  SERVICE_SECRET: serviceSecret,
};
