import { createServer } from 'node:http';
import { createLogger, createMetrics, createSlowLog, readConfig } from '@content-platform/chassis';
import { contentCacheConfig } from '../config.ts';
import type { StalenessTiming } from '../staleness/watch.ts';
import { startContentCache } from '../start.ts';
import { listen } from './listen.ts';
import { createTestTokens } from './tokens.ts';

export interface TestService {
  url: string;
  /** A token of a machine client with these scopes. */
  token(...scopes: string[]): string;
  /** Lines of the log so far. */
  log: Record<string, unknown>[];
  /** The value of a series, as it would be scraped: `name` or `name{label="value"}`. */
  metric(series: string): Promise<number>;
  /** What readiness says of one check. */
  check(name: string): Promise<boolean>;
  /** As SIGTERM does. */
  stop(): Promise<void>;
}

export interface TestServiceOptions {
  databaseUrl: string;
  redisUrl: string;
  kafka?: { brokers: string; topic: string; group: string };
  sessionTimeoutMs?: number;
  staleness?: StalenessTiming;
  env?: Record<string, string>;
}

/** The whole service, as main.ts runs it, in this process. */
export async function startTestService(options: TestServiceOptions): Promise<TestService> {
  const { databaseUrl, redisUrl, kafka, sessionTimeoutMs = 10_000, staleness, env } = options;
  const tokens = await createTestTokens();
  const config = readConfig(contentCacheConfig, {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    AUTH_URL: tokens.authUrl,
    AUTH_INTERNAL_URL: tokens.authUrl,
    PUBLIC_URL: tokens.issuer,
    KAFKA_BROKERS: kafka?.brokers,
    ...env,
  });
  const log: Record<string, unknown>[] = [];
  const write = (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>);
  const logger = createLogger('content-cache', 'info', { write });
  const metrics = createMetrics('content-cache');
  const closers: (() => unknown)[] = [() => tokens.close()];
  const onStop = (close: () => unknown) => void closers.push(close);
  const slowLog = createSlowLog(undefined, metrics, logger);
  const { app, checks } = await startContentCache(
    { config, logger, metrics, slowLog, onStop },
    {
      ...(kafka ? { topic: kafka.topic, group: kafka.group } : {}),
      ...(staleness ? { staleness } : {}),
      sessionTimeoutMs,
    },
  );
  const server = createServer(app);
  const url = await listen(server);
  return {
    url,
    token: tokens.token,
    log,
    async metric(series) {
      const line = (await metrics.registry.metrics())
        .split('\n')
        .find((each) => each.startsWith(`${series} `));
      if (!line) throw new Error(`there is no ${series}`);
      return Number(line.slice(series.length + 1));
    },
    check: (name) =>
      checks[name]!.check().then(
        () => true,
        () => false,
      ),
    async stop() {
      server.close();
      server.closeAllConnections();
      for (const close of closers.toReversed()) await close();
    },
  };
}
