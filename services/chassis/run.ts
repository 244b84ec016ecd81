import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestHandler } from 'express';
import { collectDefaultMetrics } from 'prom-client';
import { internalPortOffset } from '@content-platform/contract/services';
import { createJwksClient, fetchRevocationsFrom, watchRevocations } from './auth-state.ts';
import { ConfigError, readConfig, type commonConfig, type ConfigOf, type tokenConfig } from './config.ts';
import { type ErasureOptions, fetchDeletedUsersFrom, followDeletedUsers } from './erasure.ts';
import { createReadinessCheck, createInternalApp, type ReadinessCheck, type Check } from './health.ts';
import { listen, createGracefulShutdown } from './listen.ts';
import { createLogger, type Logger } from './logger.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createDatabase, type Database, type DatabaseOptions } from './postgres.ts';
import type { ServiceFetch } from './service-tokens.ts';
import { createSlowLog, type SlowLog } from './slow-log.ts';
import { createTokenVerifier, type TokenVerifier } from './tokens.ts';
import { closeTracer, isTraced } from './context.ts';

type CommonConfig = ConfigOf<ReturnType<typeof commonConfig>>;

export interface ProcessContext<Config> {
  config: Config;
  logger: Logger;
  metrics: Metrics;
  slowLog: SlowLog;
  /** Registers a function to call after the last request when the process stops; the last registered is called first. */
  onStop(close: () => unknown): void;
}

export interface StartedService {
  app: RequestListener;
  checks: Record<string, Check>;
  server?: ServerOptions;
  /** Time for running requests when the process stops, in ms; default 10 s. */
  gracePeriodMs?: number;
  /** Endpoints of the internal listener, for the platform's other processes. */
  internal?: RequestHandler;
  /** Called before the server listens, to handle its events outside requests: parse errors, tunnels. */
  configureServer?: (server: Server) => void;
}

const defaultGracePeriodMs = 10_000;
/** The gateway probes readiness every second, and a probe may take a second: after this time it sends no more requests. */
const shutdownDelayMs = 2_500;
const firstPauseMs = 25;
const longestPauseMs = 1_000;

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/**
 * Runs a process on PORT and, for health and metrics, on PORT + 1000. On SIGTERM it becomes not ready, serves for
 * another 2.5 s, waits for running requests and calls the `onStop` functions. On SIGINT (from a keyboard) it skips the
 * 2.5 s. An invalid configuration prints one line on stderr and exits with 1.
 */
export async function run<Settings extends ReturnType<typeof commonConfig>>(
  name: string,
  settings: Settings,
  start: (process: ProcessContext<ConfigOf<Settings>>) => Promise<StartedService>,
): Promise<void> {
  let config: ConfigOf<Settings> & CommonConfig;
  try {
    config = readConfig(settings) as typeof config;
  } catch (error) {
    if (error instanceof ConfigError) fail(`${name}: ${error.message}`);
    throw error;
  }
  const logger = createLogger(name, config.LOG_LEVEL);
  const metrics = createMetrics(name);
  // With the default of 10 ms, the measuring timer takes a quarter of an idle process's CPU time.
  collectDefaultMetrics({ register: metrics.registry, eventLoopMonitoringPrecision: 25 });
  metrics.slowThreshold.set({ kind: 'query' }, config.SLOW_QUERY_MS / 1_000);
  metrics.slowThreshold.set({ kind: 'request' }, config.SLOW_REQUEST_MS / 1_000);
  const slowLog = createSlowLog(config.LOGS_DATABASE_URL, metrics, logger);
  const closers: (() => unknown)[] = [closeTracer, () => slowLog.close()];
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT && !isTraced()) {
    logger.warn('traces are not recorded: start the process with --import ./services/chassis/telemetry.ts');
  }
  let started: StartedService | undefined;
  let checkReadiness: ReadinessCheck = () => Promise.resolve({ outcomes: {}, failing: [] });
  let up = false;
  let stopServer: (() => Promise<void>) | undefined;
  const internal = createInternalApp(metrics, async () => ({ ...(await checkReadiness()), up }));

  /** Logs once that the process is ready and, if seven rounds of checks have failed, which checks it waits for. */
  async function logReadiness(): Promise<void> {
    let isLogged = false;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      const { failing } = await checkReadiness();
      if (!up) return;
      if (failing.length === 0) return logger.info({ port: config.PORT }, 'ready');
      if (pauseMs === longestPauseMs && !isLogged) {
        logger.warn({ failing }, 'not ready: waiting for required checks');
        isLogged = true;
      }
      await sleep(pauseMs, undefined, { ref: false });
    }
  }

  async function stop(signal: string): Promise<never> {
    logger.info({ signal }, 'stopping');
    const delayMs = signal === 'SIGTERM' && up ? shutdownDelayMs : 0;
    up = false;
    setTimeout(
      () => {
        logger.error('stopped before all requests and shutdown steps had ended');
        process.exit(1);
      },
      delayMs + (started?.gracePeriodMs ?? defaultGracePeriodMs),
    ).unref();
    if (delayMs > 0) await sleep(delayMs);
    await stopServer?.();
    for (const close of closers.toReversed()) {
      await Promise.resolve()
        .then(close)
        .catch((error: unknown) => logger.warn({ error }, 'a shutdown step failed'));
    }
    process.exit(0);
  }

  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop(signal));
  process.on('uncaughtException', (error) => {
    logger.fatal({ error }, 'unhandled error');
    process.exit(1);
  });

  try {
    await listen(createServer(internal), config.PORT + internalPortOffset, config.HOST);
    started = await start({ config, logger, metrics, slowLog, onStop: (close) => closers.push(close) });
    checkReadiness = createReadinessCheck(started.checks);
    if (started.internal) internal.use(started.internal);
    // Twice the limit of the gateway, which adds headers.
    const server = createServer({ maxHeaderSize: 32_768, ...started.server }, started.app);
    started.configureServer?.(server);
    const shutDown = createGracefulShutdown(server);
    const stopListening = await listen(server, config.PORT, config.HOST);
    stopServer = () => shutDown(stopListening);
  } catch (error) {
    if (error instanceof ConfigError) fail(`${name}: ${error.message}`);
    logger.fatal({ error }, 'could not start');
    process.exit(1);
  }
  up = true;
  await logReadiness();
}

/** Opens connections to the database at `url`, which are closed when the process stops. */
export function connectDatabase(
  { config, logger, metrics, slowLog, onStop }: ProcessContext<CommonConfig>,
  url: string,
  limits: Pick<DatabaseOptions, 'maxConnections' | 'statementTimeoutMs'> = {},
): Database {
  const { SLOW_QUERY_MS: slowQueryMs } = config;
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs, ...limits });
  onStop(database.close);
  return database;
}

type TokenContext = ProcessContext<CommonConfig & ConfigOf<typeof tokenConfig>>;

/**
 * Checks tokens with the keys and revocations that auth publishes. `check` passes once both were fetched: then the
 * process works for up to an hour without auth.
 */
export function tokensFromAuth(process: TokenContext): TokenVerifier & { check: Check } {
  const { config, logger, metrics, onStop } = process;
  const keys = createJwksClient(`${config.AUTH_URL}/.well-known/jwks.json`, logger);
  const fetchRevocations = fetchRevocationsFrom(config.AUTH_INTERNAL_URL);
  const revocations = watchRevocations(fetchRevocations, logger, metrics, keys.setPublished);
  onStop(() => Promise.all([keys.close(), revocations.close()]));
  const check = async () => {
    if (!keys.isLoaded() || !revocations.isLoaded())
      throw new Error('the signing keys or the revocations were not fetched yet');
  };
  return { ...createTokenVerifier(config.PUBLIC_URL, keys, revocations), check: { required: true, check } };
}

/** Erases the users whom auth deletes, until the process stops. */
export function eraseDeletedUsers(
  { config, logger, onStop }: TokenContext,
  fetchAsService: ServiceFetch,
  options: ErasureOptions,
): void {
  const fetchPage = fetchDeletedUsersFrom(config.AUTH_INTERNAL_URL, fetchAsService);
  onStop(followDeletedUsers(fetchPage, options, logger));
}
