import { mkdirSync, rmSync } from 'node:fs';
import { Redis } from 'ioredis';
import { services } from '@content-platform/contract';
import { aptInstall, canInstall } from './apt.ts';
import { containerSpec, hasImage } from './docker.ts';
import { HOST } from './ports.ts';
import { Problem } from './problem.ts';
import { onPath, runCommand } from './run-command.ts';
import { derivedSecret, type Secrets } from './state.ts';
import { portFor, type ServerContext, type StackContext } from './stores.ts';
import type { ProcessSpec } from './supervised.ts';
import type { Report } from './terminal.ts';

const oldestVersion = 7;
const image = 'redis:8';
const settings = '--maxmemory 256mb --maxmemory-policy allkeys-lfu --appendonly yes'.split(' ');

/** Connects without retries. @throws the reason if the server does not respond within a second */
async function withRedis<T>(url: string, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 1_000,
    commandTimeout: 1_000,
    disconnectTimeout: 100,
    retryStrategy: () => null,
  });
  let cause: Error | undefined;
  client.on('error', (error) => (cause = error));
  try {
    await client.connect();
    return await work(client);
  } catch (error) {
    throw cause ?? error;
  } finally {
    client.disconnect();
  }
}

const versionOf = (url: string): Promise<string> =>
  withRedis(url, async (client) => /redis_version:(\S+)/.exec(await client.info('server'))?.[1] ?? '');

/** The readiness check: creates the services' users, which a restart loses, sets `default`'s password and logs in. */
async function ensureUsers(url: string, secrets: Secrets): Promise<void> {
  const { host, password } = new URL(url);
  await withRedis(`redis://${host}`, async (client) => {
    for (const { name, redis } of services) {
      const secret = `>${derivedSecret(secrets, `redis ${name}`)}`;
      if (redis) await client.call('ACL', 'SETUSER', name, 'on', secret, ...redis.split(' '));
    }
    await client.call('ACL', 'SETUSER', 'default', 'resetpass', `>${password}`);
  }).catch((error: Error) => {
    // NOAUTH: `default` has its password, so an earlier call has created the users.
    if (!error.message.startsWith('NOAUTH')) throw error;
  });
  await versionOf(url);
}

async function checkExternal(url: string): Promise<string> {
  const version = await versionOf(url).catch((error: Error) => {
    throw new Problem(
      `REDIS_URL: no Redis answers at ${new URL(url).host} (${error.message}). Start it, or unset REDIS_URL.`,
    );
  });
  if (Number.parseInt(version, 10) < oldestVersion)
    throw new Problem(`REDIS_URL: Redis ${version} is too old; use ${oldestVersion} or newer.`);
  return version;
}

/** Starts Redis with an empty cache, or checks the user's own; returns its URL. @throws Problem if Redis cannot run */
export async function startRedis(context: StackContext, report: Report): Promise<string> {
  const { redisUrl } = context.external;
  if (redisUrl) {
    report(`${await checkExternal(redisUrl)} at ${new URL(redisUrl).host}`);
    return redisUrl;
  }
  const port = await portFor(context, 6379);
  await context.up(await chooseSpec(context, port, report));
  report(`at ${HOST}:${port}`);
  return urlAt(context, port);
}

/** With a user name, because redis-cli otherwise sends an empty one, which Redis refuses. */
const urlAt = ({ state }: ServerContext, port: number): string =>
  `redis://default:${derivedSecret(state.secrets, 'redis')}@${HOST}:${port}`;

/** Chooses how to run Redis: a binary on PATH, Docker, or a Debian package. @throws Problem without any of them */
async function chooseSpec(context: ServerContext, port: number, report: Report): Promise<ProcessSpec> {
  const { state, signal } = context;
  const ready = (): Promise<void> => ensureUsers(urlAt(context, port), state.secrets);
  let binary = await findBinary(signal);
  if (!binary && (await hasImage(image, signal))) {
    report('in Docker');
    const command = ['redis-server', ...settings];
    return containerSpec(state, { name: 'redis', image, port, containerPort: 6379, command }, ready);
  }
  if (!binary) report('installing redis-server');
  binary ??= await installedRedis(signal);
  if (!binary)
    throw new Problem(
      `There is no Redis: install redis-server or valkey-server ${oldestVersion} or newer (apt install redis-server, brew install redis; Ubuntu 22.04 and Debian 11 have only Redis 6), or start Docker so that "docker pull ${image}" works, or set REDIS_URL.`,
    );
  const folder = state.path('redis');
  // A stack starts with an empty cache. A server that crashes while the stack runs restarts with its data.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  const place = ['--bind', HOST, '--port', String(port), '--dir', folder, '--save', ''];
  return {
    name: 'redis',
    command: binary,
    args: [...place, ...settings],
    cwd: folder,
    ready,
    readyWithinMs: 20_000,
    stopSignal: 'SIGTERM',
  };
}

/** Returns the path of a server of a supported version, installed as a Debian package if necessary; otherwise undefined. */
export async function installedRedis(signal: AbortSignal): Promise<string | undefined> {
  const binary = await findBinary(signal);
  if (binary || !canInstall()) return binary;
  return (await aptInstall(['redis-server'], signal)) ? findBinary(signal) : undefined;
}

async function findBinary(signal: AbortSignal): Promise<string | undefined> {
  for (const name of ['redis-server', 'valkey-server']) {
    const file = onPath(name);
    if (!file) continue;
    const { output } = await runCommand(file, ['--version'], { signal, within: 10_000 });
    if (Number(/v=(\d+)/.exec(output)?.[1] ?? 0) >= oldestVersion) return file;
  }
  return undefined;
}
