import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { integer, readConfig, url } from '@content-platform/chassis/config';
import { z } from 'zod';

/** The repository's folder. */
export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** What is downloaded once and shared by every stack of this clone. */
export const DOWNLOADS = join(ROOT, '.local');

/** Servers that the user runs; the launcher starts none of its own where one is given. */
export interface External {
  databaseUrl?: string | undefined;
  redisUrl?: string | undefined;
  kafkaBrokers?: string | undefined;
}

const brokers = 'addresses host:port, separated by commas';
const launcherConfig = {
  GATEWAY_PORT: integer(1024, 64_000).default(8080),
  DATABASE_URL: url('postgres:', 'postgresql:').optional(),
  REDIS_URL: url('redis:', 'rediss:').optional(),
  KAFKA_BROKERS: z
    .string()
    .regex(/^\s*[^\s:/@,]+:\d{1,5}(\s*,\s*[^\s:/@,]+:\d{1,5})*\s*$/, brokers)
    .optional(),
  IDENTITY_DEMO: z.literal('1', '1, or not set').optional(),
  CI: z.string().optional(),
  BOOTSTRAP_BEGAN: z.coerce.number().optional(),
};

/**
 * What the launcher reads from the environment. Throws ConfigError with the variable, what is allowed, and its value unless
 * it may hold a password.
 */
export function readLauncherConfig(env: NodeJS.ProcessEnv = process.env) {
  const config = readConfig(launcherConfig, env);
  const external: External = {
    databaseUrl: config.DATABASE_URL,
    redisUrl: config.REDIS_URL,
    kafkaBrokers: config.KAFKA_BROKERS,
  };
  return {
    /** Folder of everything that the stack keeps: data, logs, secrets, stack.json. */
    state: stateFolder(env),
    gatewayPort: config.GATEWAY_PORT,
    external,
    /** When the user started it, in ms since 1970: packages may have been installed since then. */
    began: config.BOOTSTRAP_BEGAN ?? Date.now(),
    /** An identity service for trials comes up, too. */
    identityDemo: config.IDENTITY_DEMO !== undefined,
    /** Nothing may be missing then: no Kafka is a failure. */
    ci: config.CI === 'true',
  };
}

/** STATE_DIR is for tests that must not touch the developer's own stack. */
const stateFolder = (env: NodeJS.ProcessEnv): string => resolve(ROOT, env.STATE_DIR || '.local');

/** Where stack.json is: STACK_FILE, else that of the stack in STATE_DIR or `.local`. */
export const stackFilePath = (env: NodeJS.ProcessEnv = process.env): string =>
  env.STACK_FILE || join(stateFolder(env), 'stack.json');

/**
 * The environment that processes inherit, with what is theirs added. What a file would say instead of an added
 * variable is left out: no process takes both X and X_FILE.
 */
export function environmentWith(added: Record<string, string>): NodeJS.ProcessEnv {
  const instead = new Set(Object.keys(added).map((name) => `${name}_FILE`));
  const inherited = Object.entries(process.env).filter(([name]) => !instead.has(name));
  return { ...Object.fromEntries(inherited), ...added };
}
