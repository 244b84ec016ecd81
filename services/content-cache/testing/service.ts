import { createLogger, createMetrics, createSlowLog, readConfig } from '@content-platform/chassis';
import { contentCacheConfig } from '../config.ts';
import type { ChangeTiming } from '../changes/follower.ts';
import { startContentCache } from '../start.ts';
import { startHttpServer } from '../../../test/support/http-server.ts';
import { createTestTokens } from './tokens.ts';

export type TestService = Awaited<ReturnType<typeof startTestService>>;

export interface TestServiceOptions {
  databaseUrl: string;
  redisUrl: string;
  kafka?: { brokers: string; topic: string; group: string };
  sessionTimeoutMs?: number;
  changes?: ChangeTiming;
  env?: Record<string, string>;
}

/** Starts the whole service in this process, as main.ts does. */
export async function startTestService(options: TestServiceOptions) {
  const { databaseUrl, redisUrl, kafka, sessionTimeoutMs, changes, env } = options;
  const tokens = await createTestTokens();
  const config = readConfig(contentCacheConfig, {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    AUTH_URL: tokens.authUrl,
    AUTH_INTERNAL_URL: tokens.authUrl,
    PUBLIC_URL: tokens.issuer,
    SERVICE_SECRET: 'a-service-secret-that-no-auth-knows',
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
    { topic: kafka?.topic, group: kafka?.group, sessionTimeoutMs, changes },
  );
  const server = await startHttpServer(app);
  return {
    url: server.origin,
    /** Signs a token of a machine client with these scopes. */
    token: tokens.token,
    userToken: tokens.userToken,
    tokenOf: tokens.tokenOf,
    log,
    /** Returns the scraped value of a series: `name` or `name{label="value"}`. */
    async metric(series: string): Promise<number> {
      const line = (await metrics.registry.metrics())
        .split('\n')
        .find((each) => each.startsWith(`${series} `));
      if (!line) throw new Error(`series not found: ${series}`);
      return Number(line.slice(series.length + 1));
    },
    /** Returns whether a readiness check passes. */
    check: (name: string): Promise<boolean> =>
      checks[name]!.check().then(
        () => true,
        () => false,
      ),
    /** Stops as SIGTERM does. */
    async stop(): Promise<void> {
      server.close();
      for (const close of closers.toReversed()) await close();
    },
  };
}
