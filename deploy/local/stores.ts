import type { External } from './config.ts';
import { type Databases, ensureDatabases } from './databases.ts';
import { externalKafka, prepareKafka } from './kafka.ts';
import { preparePostgres } from './postgres.ts';
import { Problem } from './problem.ts';
import { externalRedis, prepareRedis } from './redis.ts';
import type { State } from './state.ts';
import type { ProcessSpec } from './supervised.ts';
import type { Report } from './terminal.ts';

/** Starts a proxy in front of `port` for a test; resolves with the port of the proxy. */
export type StartProxy = (name: string, port: number) => Promise<number>;

/** Parameters for starting PostgreSQL, Redis and Kafka. */
export interface StackContext {
  state: State;
  /** Servers that the user runs; the launcher does not start them. */
  external: External;
  /** Use the default port of each server if it is free. */
  usualPorts: boolean;
  /** Fail without Kafka. */
  needsKafka: boolean;
  /** Kafka advertises its address to clients, so it needs the address of the proxy. */
  proxy?: StartProxy;
  signal: AbortSignal;
  /** Starts a process and keeps it running; resolves when it is ready. */
  up: (spec: ProcessSpec) => Promise<void>;
}

const usual = ({ usualPorts }: StackContext, port: number): number | undefined =>
  usualPorts ? port : undefined;

/** Starts PostgreSQL and creates the platform's databases. @throws Problem when it cannot start */
export async function startPostgres(context: StackContext, report: Report): Promise<Databases> {
  let url = context.external.databaseUrl;
  if (!url) {
    const prepared = await preparePostgres(context.state, usual(context, 5432), context.signal);
    await context.up(prepared.spec);
    ({ url } = prepared);
  }
  const databases = await ensureDatabases(url);
  report(`${databases.version} at ${new URL(url).host}`);
  return databases;
}

/** Starts Redis with an empty cache, or checks the user's own; returns its URL. @throws Problem if Redis cannot run */
export async function startRedis(context: StackContext, report: Report): Promise<string> {
  const { redisUrl } = context.external;
  if (redisUrl) {
    report(`${await externalRedis(redisUrl)} at ${new URL(redisUrl).host}`);
    return redisUrl;
  }
  const { spec, url } = await prepareRedis(context.state, usual(context, 6379), context.signal, report);
  await context.up(spec);
  report(`at ${new URL(url).host}`);
  return url;
}

/** Starts Kafka; returns its brokers, or null without Kafka. @throws Problem if Kafka is required and cannot run */
export async function startKafka(context: StackContext, report: Report): Promise<string | null> {
  const { kafkaBrokers } = context.external;
  if (kafkaBrokers) {
    await externalKafka(kafkaBrokers);
    report(`at ${kafkaBrokers}`);
    return kafkaBrokers;
  }
  const prepared = await prepareKafka(context.state, usual(context, 9092), context.signal, report, (port) =>
    context.proxy ? context.proxy('kafka', port) : Promise.resolve(port),
  );
  if (typeof prepared !== 'string') {
    await context.up(prepared.spec);
    report(`${prepared.version} at ${prepared.brokers}`);
    return prepared.brokers;
  }
  if (context.needsKafka)
    throw new Problem(`There is no Kafka: ${prepared}. Install Java 17 and Maven, or set KAFKA_BROKERS.`);
  report(
    `unavailable (${prepared}); invalidation works by HTTP only. To use Kafka, install Java 17 and Maven, or Docker, or set KAFKA_BROKERS.`,
  );
  return null;
}
