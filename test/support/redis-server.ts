import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Redis } from 'ioredis';
import { freePort } from '../../deploy/local/ports.ts';

import { until } from './wait.ts';

/** A real redis-server of a test's own, on a free port of loopback and in a folder of its own. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Its folder, with what it has saved. */
  readonly dir: string;
  /** A client for the test's own questions: keys, dumps, settings. */
  readonly admin: Redis;
  /** SIGSTOP: it hangs, connections stay open. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** kill -9: what was not saved is lost. */
  kill(): Promise<void>;
  /** Starts it again after kill(), on the same port, from what was last saved. */
  restart(): Promise<void>;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/**
 * Starts redis-server (found on PATH) and waits until it answers. Nothing is saved unless a test says SAVE.
 *
 * @param settings further configuration, as on its command line: { maxmemory: '2mb' }; asked for anew with each attempt
 * @param password what its own questions are asked with, where `settings` ask for one
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

/**
 * Starts a Sentinel, which is a redis-server that is told so.
 *
 * @param lines of its configuration, which it writes anew as it learns of others
 */
export function startSentinel(lines: string[]): Promise<RedisServer> {
  return start(undefined, async (port, dir) => {
    const file = join(dir, 'sentinel.conf');
    await writeFile(file, [`port ${port}`, 'bind 127.0.0.1', `dir ${dir}`, ...lines, ''].join('\n'));
    return [file, '--sentinel'];
  });
}

/** Another test may take a port between the look and the start: then it is started anew, on others. */
async function start(
  password: string | undefined,
  argumentsFor: (port: number, dir: string) => Promise<string[]>,
): Promise<RedisServer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(password, argumentsFor);
    } catch (error) {
      if (attempt === 5) throw error;
    }
  }
}

async function startOnce(
  password: string | undefined,
  argumentsFor: (port: number, dir: string) => Promise<string[]>,
): Promise<RedisServer> {
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
    child = spawn('redis-server', args, { stdio: 'ignore' });
    await once(child, 'spawn');
    // Who answers there may be another test's.
    const isOurs = async () => (await admin.info('server')).includes(`process_id:${child.pid}\r`);
    await Promise.race([until('redis-server to answer', isOurs), failed(child)]);
  }

  async function kill(): Promise<void> {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    killChild();
    await exited;
  }

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
    dir,
    admin,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    kill,
    restart: run,
    stop,
  };
}

async function failed(child: ChildProcess): Promise<never> {
  await once(child, 'exit');
  throw new Error('redis-server ended before it answered: a port may be taken');
}
