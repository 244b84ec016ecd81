import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { integer, readConfig, url } from '@content-platform/chassis/config';
import { z } from 'zod';

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** The default state folder. It also has the downloads that all stacks of this clone share. */
export const DOWNLOADS = join(ROOT, '.local');

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
  CONTENT_SERVER_PASSWORD: z.string().optional(),
  CI: z.string().optional(),
  BOOTSTRAP_BEGAN: z.coerce.number().optional(),
};

/** Reads the launcher's settings. @throws ConfigError; it omits a value that may contain a password */
export function readLauncherConfig(env: NodeJS.ProcessEnv = process.env) {
  const config = readConfig(launcherConfig, env);
  return {
    /** Folder for the stack's data, logs, secrets and stack.json. */
    state: stateFolder(env),
    gatewayPort: config.GATEWAY_PORT,
    external: {
      databaseUrl: config.DATABASE_URL,
      redisUrl: config.REDIS_URL,
      kafkaBrokers: config.KAFKA_BROKERS?.replaceAll(/\s/g, ''),
    },
    /** Time of the user's command in ms since 1970, before packages were installed. */
    began: config.BOOTSTRAP_BEGAN ?? Date.now(),
    identityDemo: config.IDENTITY_DEMO !== undefined,
    /** Password for the role `content_server`; undefined: the generated one in the state folder. */
    contentServerPassword: config.CONTENT_SERVER_PASSWORD,
    /** Requires every part, also Kafka. */
    ci: config.CI === 'true',
  };
}

/** Returns the URL of the platform's database for DATABASE_URL: the one that it names, otherwise `platform`. */
export function platformUrl(databaseUrl: string): string {
  const platform = new URL(databaseUrl);
  if (['', '/', '/postgres'].includes(platform.pathname)) platform.pathname = '/platform';
  return platform.href;
}

/** Servers that the user runs. The launcher starts no server of a kind that is listed here. */
export type External = Partial<ReturnType<typeof readLauncherConfig>['external']>;

/** STATE_DIR lets tests avoid the developer's own stack. */
const stateFolder = (env: NodeJS.ProcessEnv): string => resolve(ROOT, env.STATE_DIR || DOWNLOADS);

/** Path of stack.json: STACK_FILE, or the file in STATE_DIR or `.local`. */
export const stackFilePath = (env: NodeJS.ProcessEnv = process.env): string =>
  env.STACK_FILE || join(stateFolder(env), 'stack.json');

/** Returns the inherited environment with `added` variables. A process refuses X together with X_FILE: drops X_FILE. */
export function environmentWith(added: Record<string, string>): NodeJS.ProcessEnv {
  const instead = new Set(Object.keys(added).map((name) => `${name}_FILE`));
  const inherited = Object.entries(process.env).filter(([name]) => !instead.has(name));
  return { ...Object.fromEntries(inherited), ...added };
}

/** Sets variables of this process, as environmentWith does for a child process. */
export function setEnvironment(added: Record<string, string>): void {
  process.env = environmentWith(added);
}
