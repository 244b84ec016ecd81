import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../../deploy/local/ports.ts';
import { onPath } from '../../deploy/local/run-command.ts';
import { killed } from './server.ts';
import { until } from './wait.ts';

/** A real redis-server for one test, on a free loopback port with its own folder. */
export type RedisServer = Awaited<ReturnType<typeof startOnce>>;

type ArgumentsFor = (port: number, dir: string) => Promise<string[]>;

/**
 * Starts Redis or Valkey from PATH; nothing is saved unless a test sends SAVE. `settings`, for example { maxmemory:
 * '2mb' }, may be a function that each start attempt calls. `password` is for the test's own client.
 */
export function startRedis(
  settings: Record<string, string> | (() => Promise<Record<string, string>>) = {},
  password?: string,
): Promise<RedisServer> {
  return start(password, async (port, dir) => {
    const own = { port: String(port), bind: '127.0.0.1', dir, save: '', appendonly: 'no' };
    const further = typeof settings === 'function' ? await settings() : settings;
    return Object.entries({ ...own, ...further }).flatMap(([name, value]) => [`--${name}`, value]);
  });
}

/** Starts redis-server in Sentinel mode with a configuration, which Sentinel rewrites when it learns of other nodes. */
export function startSentinel(lines: string[]): Promise<RedisServer> {
  return start(undefined, async (port, dir) => {
    const file = join(dir, 'sentinel.conf');
    await writeFile(file, [`port ${port}`, 'bind 127.0.0.1', `dir ${dir}`, ...lines, ''].join('\n'));
    return [file, '--sentinel'];
  });
}

/** Retries on other ports if another test takes the chosen port before the server listens. */
async function start(password: string | undefined, argumentsFor: ArgumentsFor): Promise<RedisServer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(password, argumentsFor);
    } catch (error) {
      if (attempt === 5) throw error;
    }
  }
}

async function startOnce(password: string | undefined, argumentsFor: ArgumentsFor) {
  const dir = await mkdtemp(join(tmpdir(), 'redis-'));
  const port = await freePort();
  const args = await argumentsFor(port, dir);
  const admin = new Redis(port, '127.0.0.1', {
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
    commandTimeout: 5000,
    ...(password ? { password } : {}),
  });
  admin.on('error', () => {});

  let child: ChildProcess;
  const killChild = () => child.kill('SIGKILL');
  process.once('exit', killChild);

  async function run(): Promise<void> {
    child = spawn(onPath('redis-server', 'valkey-server') ?? 'redis-server', args, { stdio: 'ignore' });
    await once(child, 'spawn');
    // Another test's server may respond on this port.
    const isOurs = async () => (await admin.info('server')).includes(`process_id:${child.pid}\r`);
    await Promise.race([until('redis-server responds', isOurs), failed(child)]);
  }

  const kill = () => killed(child);
  async function stop(): Promise<void> {
    admin.disconnect();
    await kill();
    process.removeListener('exit', killChild);
    await rm(dir, { recursive: true, force: true });
  }

  try {
    await run();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    /** The server's folder, with its saved data. */
    dir,
    /** A client for the test's own commands: keys, dumps, settings. */
    admin,
    /** The server hangs and its connections stay open, until `resume`. */
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    /** Sends SIGKILL: unsaved data is lost. */
    kill,
    /** Starts it again after kill(), on the same port, from the last save. */
    restart: run,
    stop,
  };
}

async function failed(child: ChildProcess): Promise<never> {
  await once(child, 'exit');
  throw new Error('redis-server ended before it answered: a port may be taken');
}
