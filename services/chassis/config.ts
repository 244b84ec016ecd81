import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { internalPortOffset, portOf, type ServiceName } from '@content-platform/contract/services';
import { parseRedisUrl, redisForms } from './redis-address.ts';

/** The configuration is invalid; `message` is one line that names the setting. */
export class ConfigError extends Error {}

/** An integer from `min` to `max`, in digits. */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER) {
  const allowed = `an integer from ${min} to ${max}`;
  return z
    .string(allowed)
    .regex(/^\d{1,16}$/, allowed)
    .transform(Number)
    .refine((value) => value >= min && value <= max, allowed);
}

const zeroToOne = 'a number from 0 to 1';
const fraction = z
  .string(zeroToOne)
  .regex(/^(?:0|1|0?\.\d{1,9}|1\.0{1,9})$/, zeroToOne)
  .transform(Number);

/** `true` or `false`; default: false. */
export const flag = () =>
  z
    .enum(['true', 'false'], 'true or false')
    .default('false')
    .transform((value) => value === 'true');

/** A URL with one of these schemes, for example `url('http:', 'https:')`. */
export function url(...schemes: string[]) {
  const allowed = `a URL starting with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}`;
  return z
    .string(allowed)
    .refine((value) => URL.canParse(value) && schemes.includes(new URL(value).protocol), allowed);
}

const withSchemeInLowerCase = (url: string) => url.trim().replace(/^\w+/, (scheme) => scheme.toLowerCase());
/** A URL to which paths are appended: the scheme in lower case, no spaces around it, no slashes at its end. */
export const baseUrl = () =>
  url('http:', 'https:').transform((text) => withSchemeInLowerCase(text).replace(/\/+$/, ''));

/** A text for which `parse` does not throw. `allowed` describes it. */
export function parsable(parse: (value: string) => unknown, allowed: string) {
  return z.string(allowed).refine((value) => {
    try {
      parse(value);
      return true;
    } catch {
      return false;
    }
  }, allowed);
}

/** Comma-separated values; empty means none. */
export function list<T extends string = string>(item: z.ZodType<T, string> = z.string() as never) {
  return z
    .string()
    .transform((value) =>
      value
        .split(',')
        .map((part) => part.trim())
        .filter(Boolean),
    )
    .pipe(z.array(item));
}

export function commonConfig(defaultPort: number) {
  return {
    HOST: z.string().min(1).default('127.0.0.1').describe('IP address that both listeners bind to'),
    PORT: integer(1, 64_535)
      .default(defaultPort)
      .describe('Public port, 1 to 64535; internal port: 1000 above'),
    PUBLIC_URL: baseUrl()
      .default('http://127.0.0.1:8080')
      .describe('URL at which clients reach the gateway, http or https; also the issuer of access tokens'),
    LOG_LEVEL: z
      .enum(['debug', 'info', 'warn', 'error'], 'debug, info, warn or error')
      .default('info')
      .describe('Lowest level that is logged: `debug`, `info`, `warn` or `error`'),
    LOGS_DATABASE_URL: url('postgres:', 'postgresql:')
      .optional()
      .describe('URL of the PostgreSQL database for slow requests and queries; unset: none are stored'),
    OTEL_EXPORTER_OTLP_ENDPOINT: url('http:', 'https:')
      .optional()
      .describe('URL of the OpenTelemetry collector (OTLP over HTTP); unset: no traces'),
    OTEL_TRACES_SAMPLER_ARG: fraction
      .default(0.05)
      .describe('Share of the traces to send that are neither slow nor failed, 0 to 1'),
    SLOW_REQUEST_MS: integer(1).default(500).describe('Duration in ms of a slow request, at least 1'),
    SLOW_QUERY_MS: integer(1).default(200).describe('Duration in ms of a slow query, at least 1'),
  };
}

export const databaseUrl = url('postgres:', 'postgresql:').describe(
  'URL of the PostgreSQL database `platform`; must lead to the primary',
);
export const redisUrl = parsable(parseRedisUrl, redisForms)
  .default('redis://127.0.0.1:6379')
  .describe(
    'URL of Redis 7 or newer: `redis://…`, `redis-sentinel://…` or `redis-cluster://…`, with TLS `rediss…`',
  );
export const serviceUrl = (name: ServiceName) =>
  baseUrl()
    .default(`http://127.0.0.1:${portOf(name)}`)
    .describe(`URL of the ${name} service`);
const authUrl = serviceUrl('auth').describe('URL of auth, which publishes the keys of access tokens');
const authInternalUrl = baseUrl()
  .default(`http://127.0.0.1:${portOf('auth') + internalPortOffset}`)
  .describe('URL of the internal listener of the auth service, which publishes revoked sessions');
/** The settings of processes that check tokens. */
export const tokenConfig = { AUTH_URL: authUrl, AUTH_INTERNAL_URL: authInternalUrl };

const serviceSecretForm = 'a secret of 32 or more characters';
export const serviceSecret = z
  .string(serviceSecretForm)
  .regex(/^[\w-]{32,}$/, serviceSecretForm)
  .describe(
    'Secret with which the service gets tokens for internal listeners, 32 or more characters of A-Z, a-z, 0-9, - and _; SERVICE_SECRETS of auth has it too',
  );

/** Settings whose value must not be shown in an error, and that can be given as a file. */
const secret = /(_SECRET|_SECRETS|_SECRET_NEW|_PASSWORD|_URL|_ACCESS_KEY)$/;

function withFiles(env: NodeJS.ProcessEnv, names: string[]): Record<string, string | undefined> {
  const values: Record<string, string | undefined> = {};
  for (const name of names) {
    const file = env[`${name}_FILE`];
    // An empty variable counts as unset, because Compose files and shells often set variables to an empty text.
    values[name] = env[name] || undefined;
    if (!file || !secret.test(name)) continue;
    if (values[name] !== undefined)
      throw new ConfigError(`${name} and ${name}_FILE are both set; set only one of them`);
    try {
      values[name] = readFileSync(file, 'utf8').trim() || undefined;
    } catch (error) {
      throw new ConfigError(`${name}_FILE: ${(error as Error).message}`);
    }
  }
  return values;
}

export type ConfigOf<Settings extends z.ZodRawShape> = z.output<z.ZodObject<Settings>>;

/**
 * Reads the settings from the environment; a secret X also from the file X_FILE. Throws ConfigError with the variable,
 * its value (unless it may be a secret) and the allowed values.
 */
export function readConfig<S extends z.ZodRawShape>(shape: S, env = process.env): ConfigOf<S> {
  const values = withFiles(env, Object.keys(shape));
  const result = z.object(shape).safeParse(values);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const name = String(issue.path[0]);
  const given = values[name];
  if (given === undefined) throw new ConfigError(`${name} is not set; it must be ${issue.message}`);
  const shown = secret.test(name) ? 'what it is set to' : JSON.stringify(given.slice(0, 100));
  throw new ConfigError(`${name} must be ${issue.message}, not ${shown}`);
}

/** Returns whether all of these settings are set. Throws ConfigError if only some of them are. */
export function areAllSet<Config extends object, Name extends keyof Config & string>(
  config: Config,
  names: readonly Name[],
): config is Config & { [N in Name]-?: NonNullable<Config[N]> } {
  const missing = names.filter((name) => config[name] === undefined);
  if (missing.length === 0 || missing.length === names.length) return missing.length === 0;
  const verb = missing.length === 1 ? 'is' : 'are';
  throw new ConfigError(`${missing.join(' and ')} ${verb} not set; set all of ${names.join(', ')} or none`);
}
