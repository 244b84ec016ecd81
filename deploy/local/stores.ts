import type { External } from './config.ts';
import { type Databases, ensureDatabases } from './databases.ts';
import { externalKafka, prepareKafka } from './kafka.ts';
import { preparePostgres } from './postgres.ts';
import { Problem } from './problem.ts';
import { externalRedis, prepareRedis } from './redis.ts';
import type { State } from './state.ts';
import type { ProcessSpec } from './supervised.ts';

/** Where the platform's processes are to reach what listens at `port`, for a test that stands in between. */
export type Front = (name: string, port: number) => Promise<number>;

/** What is common to the servers that the platform stands on. */
export interface Ground {
  state: State;
  /** Servers that the user runs: where one is named, none is started. */
  external: External;
  /** Take the usual port of each server where it is free. */
  usualPorts: boolean;
  /** No Kafka is a failure. */
  needsKafka: boolean;
  /** What stands between Kafka and its clients, who are told that address by Kafka itself. */
  front?: Front;
  signal: AbortSignal;
  /** Starts a process and keeps it up; resolves when it is ready. */
  up: (spec: ProcessSpec) => Promise<void>;
}

type Tell = (detail: string) => void;

const usual = (ground: Ground, port: number): number | undefined => (ground.usualPorts ? port : undefined);

/** PostgreSQL with the platform's databases. @throws Problem when it cannot be had */
export async function startPostgres(ground: Ground, tell: Tell): Promise<Databases> {
  let url = ground.external.databaseUrl;
  if (!url) {
    const prepared = await preparePostgres(ground.state, usual(ground, 5432), ground.signal);
    await ground.up(prepared.spec);
    ({ url } = prepared);
  }
  const databases = await ensureDatabases(url);
  tell(`${databases.version} at ${new URL(url).host}`);
  return databases;
}

/** The address of a Redis with an empty cache, or of the user's own. @throws Problem when there is none */
export async function startRedis(ground: Ground, tell: Tell): Promise<string> {
  const { redisUrl } = ground.external;
  if (redisUrl) {
    tell(`${await externalRedis(redisUrl)} at ${new URL(redisUrl).host}`);
    return redisUrl;
  }
  const { spec, url } = await prepareRedis(ground.state, usual(ground, 6379), ground.signal, tell);
  await ground.up(spec);
  tell(`at ${new URL(url).host}`);
  return url;
}

/** Kafka's brokers; null when it is not to be had and not needed. @throws Problem when it is needed */
export async function startKafka(ground: Ground, tell: Tell): Promise<string | null> {
  const { kafkaBrokers } = ground.external;
  if (kafkaBrokers) {
    await externalKafka(kafkaBrokers);
    tell(`at ${kafkaBrokers}`);
    return kafkaBrokers;
  }
  const prepared = await prepareKafka(ground.state, usual(ground, 9092), ground.signal, tell, (port) =>
    ground.front ? ground.front('kafka', port) : Promise.resolve(port),
  );
  if (typeof prepared !== 'string') {
    await ground.up(prepared.spec);
    tell(`${prepared.version} at ${prepared.brokers}`);
    return prepared.brokers;
  }
  if (ground.needsKafka)
    throw new Problem(`There is no Kafka: ${prepared}. Install Java 17 and Maven, or set KAFKA_BROKERS.`);
  tell(
    `not to be had (${prepared}): invalidation by HTTP only. Java 17 with Maven, Docker or KAFKA_BROKERS bring it.`,
  );
  return null;
}
