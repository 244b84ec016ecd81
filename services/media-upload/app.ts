import {
  createService,
  type Database,
  type Logger,
  type Metrics,
  type TokenVerifier,
} from '@content-platform/chassis';

export interface MediaUploadDeps {
  database: Database;
  tokens: TokenVerifier;
  logger: Logger;
  metrics: Metrics;
}

export function createMediaUpload({ tokens, logger, metrics }: MediaUploadDeps) {
  return createService({ name: 'media-upload', logger, metrics, tokens }, []);
}
