import { readFileSync } from 'node:fs';
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
  /** When the user started it, in ms since 1970: packages may have been installed since then. */
  began: number;
  /** An identity service for trials comes up, too. */
  identityDemo: boolean;
  /** Nothing may be missing then: no Kafka is a failure. */
  ci: boolean;
}

const optional = (value: string | undefined): string | undefined => value?.trim() || undefined;

/**
 * What the launcher reads from the environment: GATEWAY_PORT, DATABASE_URL and REDIS_URL (each also as a file that
 * X_FILE names), KAFKA_BROKERS, IDENTITY_DEMO, CI and, for tests that must not touch the developer's own stack, STATE_DIR in the
 * place of `.local`.
 * @throws Problem naming the variable and what is allowed, and what was given unless it may hold a password
 */
export function readConfig(env: NodeJS.ProcessEnv = process.env): LauncherConfig {
  const databaseUrl = urlOf('DATABASE_URL', ['postgres:', 'postgresql:'], env);
  const redisUrl = urlOf('REDIS_URL', ['redis:', 'rediss:'], env);
  const kafkaBrokers = brokersOf(optional(env.KAFKA_BROKERS));
  return {
    state: stateFolder(env),
    gatewayPort: portOf('GATEWAY_PORT', optional(env.GATEWAY_PORT) ?? '8080'),
    external: {
      ...(databaseUrl && { databaseUrl }),
      ...(redisUrl && { redisUrl }),
      ...(kafkaBrokers && { kafkaBrokers }),
    },
    began: Number(env.BOOTSTRAP_BEGAN) || Date.now(),
    identityDemo: flagOf('IDENTITY_DEMO', optional(env.IDENTITY_DEMO)),
    ci: env.CI === 'true',
  };
}

const stateFolder = (env: NodeJS.ProcessEnv): string => resolve(ROOT, optional(env.STATE_DIR) ?? '.local');

function urlOf(name: string, schemes: string[], env: NodeJS.ProcessEnv): string | undefined {
  const value = optional(env[name]) ?? fromFile(`${name}_FILE`, optional(env[`${name}_FILE`]));
  if (optional(env[name]) && optional(env[`${name}_FILE`]))
    throw new Problem(`${name} and ${name}_FILE are both set: give one of them.`);
  if (value !== undefined && !(URL.canParse(value) && schemes.includes(new URL(value).protocol)))
    throw new Problem(
      `${name} is no address: give one that starts with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}.`,
    );
  return value;
}

function fromFile(name: string, file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new Problem(`${name}: ${(error as Error).message}`);
  }
}

function brokersOf(value: string | undefined): string | undefined {
  if (value?.split(',').some((address) => !/^[^\s:/@]+:\d{1,5}$/.test(address.trim())))
    throw new Problem(`KAFKA_BROKERS is "${value}": give addresses host:port, separated by commas.`);
  return value;
}

function flagOf(name: string, value: string | undefined): boolean {
  if (value !== undefined && value !== '1')
    throw new Problem(`${name} is "${value}": give 1, or leave it out.`);
  return value === '1';
}

function portOf(name: string, value: string): number {
  const port = Number(value);
  if (!/^\d+$/.test(value) || port < 1024 || port > 64_000)
    throw new Problem(`${name} is "${value}": give a port from 1024 to 64000.`);
  return port;
}

/** Where stack.json is: STACK_FILE, else that of the stack in STATE_DIR or `.local`. */
export const stackFilePath = (env: NodeJS.ProcessEnv = process.env): string =>
  optional(env.STACK_FILE) ?? join(stateFolder(env), 'stack.json');

/**
 * The environment that processes inherit, with what is theirs added. What a file would say instead of an added
 * variable is left out: no process takes both X and X_FILE.
 */
export function environmentWith(added: Record<string, string>): NodeJS.ProcessEnv {
  const instead = new Set(Object.keys(added).map((name) => `${name}_FILE`));
  const inherited = Object.entries(process.env).filter(([name]) => !instead.has(name));
  return { ...Object.fromEntries(inherited), ...added };
}
