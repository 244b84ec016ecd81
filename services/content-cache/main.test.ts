import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePort, freeRow } from '../../deploy/local/ports.ts';
import { bareEnvironment } from '../../test/support/processes.ts';
import { until } from '../../test/support/wait.ts';
import { startWorld, type World } from './testing/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

const main = fileURLToPath(new URL('main.ts', import.meta.url));

async function start(env: Record<string, string>) {
  const port = await freeRow(1);
  const child = spawn(process.execPath, [main], {
    env: { ...bareEnvironment, DATABASE_URL: world.databaseUrl, PORT: String(port), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdout.resume();
  const exit = once(child, 'exit') as Promise<[number | null]>;
  return {
    child,
    internal: `http://127.0.0.1:${port + 1000}`,
    ended: async () => ({ code: (await exit)[0], stderr }),
  };
}

test.each([
  [{ CACHE_TTL: '0' }, 'CACHE_TTL must be an integer from 1 to 86400, not "0"'],
  [{ CACHE_UNMANAGED_KEYS: 'some' }, 'CACHE_UNMANAGED_KEYS must be sweep or none, not "some"'],
  [{ KAFKA_BROKERS: 'kafka' }, 'KAFKA_BROKERS must be addresses host:port, separated by commas, not "kafka"'],
  [
    { DATABASE_URL: '' },
    'DATABASE_URL is not set; it must be an address starting with postgres:// or postgresql://',
  ],
])('with %j it stops with one line', async (env, line) => {
  const { ended } = await start(env as Record<string, string>);
  expect(await ended()).toEqual({ code: 1, stderr: `content-cache: ${line}\n` });
});

test('a Redis that does not tell who it is stops it with one line', async () => {
  await world.redis.admin.call('ACL', 'SETUSER', 'blind', 'on', '>secret', '~*', '+@all', '-info');
  const { ended } = await start({ REDIS_URL: `redis://blind:secret@127.0.0.1:${world.redis.port}` });
  const { code, stderr } = await ended();
  expect(code).toBe(1);
  expect(stderr).toMatch(/^content-cache: REDIS_URL: .*INFO.*\n$/);
});

test('without Redis and Kafka it is ready, and degraded; it stops in time when it is told to', async () => {
  const { child, internal, ended } = await start({
    REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
    KAFKA_BROKERS: `127.0.0.1:${await freePort()}`,
  });
  const health = await until('it is ready', async () => {
    const response = await fetch(`${internal}/health/ready`);
    return response.status === 200 && response.json();
  });
  expect(health).toEqual({ status: 'degraded', checks: { postgres: 'ok', redis: 'away', kafka: 'away' } });
  child.kill('SIGTERM');
  // 1, if it had to be cut off after 10 s.
  expect(await ended()).toMatchObject({ code: 0 });
});
