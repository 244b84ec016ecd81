import {
  createService,
  type Database,
  type Logger,
  type Metrics,
  type TokenVerifier,
} from '@content-platform/chassis';

export interface LettersDeps {
  database: Database;
  tokens: TokenVerifier;
  logger: Logger;
  metrics: Metrics;
}

export function createLetters({ tokens, logger, metrics }: LettersDeps) {
  return createService({ name: 'letters', logger, metrics, tokens }, []);
}
