import {
  createService,
  type Database,
  type Logger,
  type Metrics,
  type TokenVerifier,
} from '@content-platform/chassis';

export interface DevicesDeps {
  database: Database;
  tokens: TokenVerifier;
  logger: Logger;
  metrics: Metrics;
}

export function createDevices({ tokens, logger, metrics }: DevicesDeps) {
  return createService({ name: 'devices', logger, metrics, tokens }, []);
}
