import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestHandler } from 'express';
import type { z } from 'zod';
import { ConfigError, type commonConfig } from './config.ts';
import { createInternalApp, type Check } from './health.ts';
import { listen } from './listen.ts';
import { createLogger, type Logger } from './logger.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createSlowLog, type SlowLog } from './slow-log.ts';
import { createStop } from './stop-server.ts';
import { closeTracer, isTraced } from './tracing.ts';

type CommonConfig = z.output<z.ZodObject<ReturnType<typeof commonConfig>>>;

export interface Process<Config> {
  config: Config;
  logger: Logger;
  metrics: Metrics;
  slowLog: SlowLog;
  /** Called when the process stops, the last registered first, after the last request is answered. */
  onStop(close: () => unknown): void;
}

export interface Running {
  app: RequestListener;
  /** What readiness looks at. */
  checks: Record<string, Check>;
  server?: ServerOptions;
  /** What is under way has so long to finish when the process is told to stop, when that is more than 10 s. In ms. */
  finishMs?: number;
  /** For the other processes of the platform alone: answered by the internal listener. */
  internal?: RequestHandler;
  /** For what a server reports without a request: parse errors, tunnels. Called before it listens. */
  prepare?: (server: Server) => void;
}

const usualFinishMs = 10_000;
/** The gateway asks for readiness every second, and an answer may take one: after this it sends nothing more. */
const noticeMs = 2_500;

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/**
 * Runs a process: reads its configuration, listens on PORT and, for health and metrics, on PORT + 1000, and stops on
 * SIGTERM: not ready any more, for 2.5 s it answers as before, then what is under way finishes and everything `onStop`
 * named is closed. On SIGINT, which comes from a keyboard, the same at once. A wrong configuration is one line on
 * stderr and exit 1.
 */
export async function run<Config extends CommonConfig>(
  name: string,
  readConfig: () => Config,
  start: (process: Process<Config>) => Promise<Running>,
): Promise<void> {
  let config: Config;
  try {
    config = readConfig();
  } catch (error) {
    if (error instanceof ConfigError) fail(`${name}: ${error.message}`);
    throw error;
  }
  const logger = createLogger(name, config.LOG_LEVEL);
  const metrics = createMetrics(name);
  const slowLog = createSlowLog(config.LOGS_DATABASE_URL, metrics, logger);
  const closers: (() => unknown)[] = [closeTracer, () => slowLog.close()];
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT && !isTraced()) {
    logger.warn(
      'there are no traces: the process was started without --import services/chassis/telemetry.ts',
    );
  }
  let running: Running | undefined;
  let up = false;
  let stopServer: (() => Promise<void>) | undefined;
  const internal = createServer(
    createInternalApp(
      metrics,
      () => running?.checks ?? {},
      () => up,
      () => running?.internal,
    ),
  );

  async function stop(signal: string): Promise<never> {
    logger.info({ signal }, 'stopping');
    const notice = signal === 'SIGTERM' && up ? noticeMs : 0;
    up = false;
    setTimeout(
      () => {
        logger.error('stopped before everything was finished');
        process.exit(1);
      },
      notice + (running?.finishMs ?? usualFinishMs),
    ).unref();
    if (notice > 0) await sleep(notice);
    await stopServer?.();
    for (const close of closers.toReversed()) {
      await Promise.resolve()
        .then(close)
        .catch((error: unknown) => logger.warn({ error }, 'closing failed'));
    }
    process.exit(0);
  }

  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop(signal));
  process.on('uncaughtException', (error) => {
    logger.fatal({ error }, 'an error that nobody handled');
    process.exit(1);
  });

  try {
    await listen(internal, config.PORT + 1000, config.HOST);
    running = await start({ config, logger, metrics, slowLog, onStop: (close) => closers.push(close) });
    const server = createServer({ maxHeaderSize: 16_384, ...running.server }, running.app);
    running.prepare?.(server);
    const stopListening = createStop(server);
    const close = await listen(server, config.PORT, config.HOST);
    stopServer = () => stopListening(close);
  } catch (error) {
    if (error instanceof ConfigError) fail(`${name}: ${error.message}`);
    logger.fatal({ error }, 'could not start');
    process.exit(1);
  }
  up = true;
  logger.info({ port: config.PORT }, 'ready');
}
