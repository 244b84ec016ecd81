import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Problem } from './problem.ts';

/** The repository's folder. */
export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** What is downloaded once and shared by every stack of this clone. */
export const DOWNLOADS = join(ROOT, '.local');

/** Servers that the user runs; the launcher starts none of its own where one is given. */
export interface External {
  databaseUrl?: string;
  redisUrl?: string;
  kafkaBrokers?: string;
}

export interface LauncherConfig {
  /** Folder of everything that the stack keeps: data, logs, secrets, stack.json. */
  state: string;
  gatewayPort: number;
  external: External;
  /** Nothing may be missing then: no Kafka is a failure. */
  ci: boolean;
}

const optional = (value: string | undefined): string | undefined => value?.trim() || undefined;

/**
 * What the launcher reads from the environment: GATEWAY_PORT, DATABASE_URL, REDIS_URL, KAFKA_BROKERS, CI and, for
 * tests that must not touch the developer's own stack, STATE_DIR in the place of `.local`.
 * @throws Problem naming the variable, what was given and what is allowed
 */
export function readConfig(env: NodeJS.ProcessEnv = process.env): LauncherConfig {
  const [databaseUrl, redisUrl, kafkaBrokers] = [env.DATABASE_URL, env.REDIS_URL, env.KAFKA_BROKERS].map(
    optional,
  );
  return {
    state: resolve(ROOT, optional(env.STATE_DIR) ?? '.local'),
    gatewayPort: portOf('GATEWAY_PORT', optional(env.GATEWAY_PORT) ?? '8080'),
    external: {
      ...(databaseUrl && { databaseUrl }),
      ...(redisUrl && { redisUrl }),
      ...(kafkaBrokers && { kafkaBrokers }),
    },
    ci: env.CI === 'true',
  };
}

function portOf(name: string, value: string): number {
  const port = Number(value);
  if (!/^\d+$/.test(value) || port < 1024 || port > 64_000)
    throw new Problem(`${name} is "${value}": give a port from 1024 to 64000.`);
  return port;
}

/** Where stack.json is: STACK_FILE, else that of the stack in STATE_DIR or `.local`. */
export const stackFilePath = (env: NodeJS.ProcessEnv = process.env): string =>
  optional(env.STACK_FILE) ?? join(readConfig(env).state, 'stack.json');

/** The environment that processes inherit, with what is theirs added. */
export const environmentWith = (added: Record<string, string>): NodeJS.ProcessEnv => ({
  ...process.env,
  ...added,
});
