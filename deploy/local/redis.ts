import { mkdirSync, rmSync } from 'node:fs';
import { Redis } from 'ioredis';
import { services } from '@content-platform/contract';
import { aptInstall, canInstall } from './apt.ts';
import { containerSpec, hasImage } from './docker.ts';
import { HOST, preferredOrFreePort } from './ports.ts';
import { Problem } from './problem.ts';
import { onPath, runCommand } from './run-command.ts';
import { derivedSecret, type Secrets, type State } from './state.ts';
import type { ProcessSpec } from './supervised.ts';
import type { Report } from './terminal.ts';

const oldestVersion = 7;
const image = 'redis:8';
const settings = '--maxmemory 256mb --maxmemory-policy allkeys-lfu --appendonly yes'.split(' ');

/**
 * Resolves with the server's version.
 * @throws the reason if the server does not respond within a second
 */
async function pingRedis(url: string): Promise<string> {
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
    return /redis_version:(\S+)/.exec(await client.info('server'))?.[1] ?? '';
  } catch (error) {
    throw cause ?? error;
  } finally {
    client.disconnect();
  }
}

/**
 * Creates the users of the services on a server that has just started, and gives the user `default`, who may do
 * everything, the password of `url`.
 */
async function ensureUsers(url: string, secrets: Secrets): Promise<void> {
  const { port, password } = new URL(url);
  const client = new Redis({ host: HOST, port: Number(port), lazyConnect: true, retryStrategy: () => null });
  client.on('error', () => {}); // the command under way reports the error
  try {
    await client.connect();
    for (const { name, redis } of services) {
      if (!redis) continue;
      const rules = redis.split(' ');
      await client.call(
        'ACL',
        'SETUSER',
        name,
        'on',
        `>${derivedSecret(secrets, `redis ${name}`)}`,
        ...rules,
      );
    }
    await client.call('ACL', 'SETUSER', 'default', 'resetpass', `>${password}`);
  } catch (error) {
    // The server has its users already.
    if (!(error as Error).message.startsWith('NOAUTH')) throw error;
  } finally {
    client.disconnect();
  }
  await pingRedis(url);
}

/** Checks the server at REDIS_URL. @throws Problem if it does not respond or is too old */
export async function externalRedis(url: string): Promise<string> {
  const version = await pingRedis(url).catch((error: Error) => {
    throw new Problem(
      `REDIS_URL: no Redis answers at ${new URL(url).host} (${error.message}). Start it, or unset REDIS_URL.`,
    );
  });
  if (Number.parseInt(version, 10) < oldestVersion)
    throw new Problem(`REDIS_URL: Redis ${version} is too old; use ${oldestVersion} or newer.`);
  return version;
}

/**
 * Chooses how to run Redis: a binary on PATH, Docker, or a Debian package.
 * @param usual the port to use if it is free; default: any free port
 * @throws Problem if none of them is available
 */
export async function prepareRedis(
  state: State,
  usual: number | undefined,
  signal: AbortSignal,
  report: Report,
): Promise<{ spec: ProcessSpec; url: string }> {
  const port = await preferredOrFreePort(usual);
  // redis-cli sends an empty user name, which Redis refuses, if the URL has none.
  const url = `redis://default:${derivedSecret(state.secrets, 'redis')}@${HOST}:${port}`;
  const ready = (): Promise<void> => ensureUsers(url, state.secrets);
  const local = (binary: string): { spec: ProcessSpec; url: string } => ({
    url,
    spec: serverSpec(state, binary, port, ready),
  });

  const binary = await newEnough(signal);
  if (binary) return local(binary);
  if (await hasImage(image, signal)) {
    report('in Docker');
    const command = ['redis-server', ...settings];
    return {
      url,
      spec: containerSpec(state, { name: 'redis', image, port, inside: 6379, command }, ready),
    };
  }
  report('installing redis-server');
  const installed = await installedRedis(signal);
  if (installed) return local(installed);
  throw new Problem(
    `There is no Redis: install redis-server or valkey-server ${oldestVersion} or newer (apt install redis-server, brew install redis), start Docker, or set REDIS_URL.`,
  );
}

/** Returns the path of a server of a supported version, installed as a Debian package if necessary; otherwise undefined. */
export async function installedRedis(signal: AbortSignal): Promise<string | undefined> {
  const binary = await newEnough(signal);
  if (binary || !canInstall()) return binary;
  return (await aptInstall(['redis-server'], signal)) ? newEnough(signal) : undefined;
}

async function newEnough(signal: AbortSignal): Promise<string | undefined> {
  for (const name of ['redis-server', 'valkey-server']) {
    const file = onPath(name);
    if (!file) continue;
    const { output } = await runCommand(file, ['--version'], { signal, within: 10_000 });
    if (Number(/v=(\d+)/.exec(output)?.[1] ?? 0) >= oldestVersion) return file;
  }
  return undefined;
}

function serverSpec(state: State, binary: string, port: number, ready: () => Promise<void>): ProcessSpec {
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
