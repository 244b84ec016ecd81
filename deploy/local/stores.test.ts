import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openState, type State } from './state.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { until } from '../../test/support/wait.ts';
import { startKafka } from './kafka.ts';
import { startPostgres } from './postgres.ts';
import { startRedis } from './redis.ts';
import { freePort } from './ports.ts';
import { portFor, type StackContext } from './stores.ts';

const { PATH, JAVA_HOME } = process.env;
let folder: string;
let state: State;

beforeEach(() => {
  folder = temporaryFolder();
  state = openState(folder, '');
});
afterEach(() => {
  Object.assign(process.env, { PATH });
  if (JAVA_HOME !== undefined) process.env.JAVA_HOME = JAVA_HOME;
});

const context = (changed: Partial<StackContext> = {}): StackContext => ({
  state,
  external: {},
  usualPorts: false,
  needsKafka: true,
  signal: new AbortController().signal,
  up: () => Promise.reject(new Error('a server was started')),
  ...changed,
});
const report = (): void => {};

test('refuses configured servers that do not respond', async () => {
  const external = {
    redisUrl: 'redis://127.0.0.1:1',
    kafkaBrokers: '127.0.0.1:1',
    databaseUrl: 'postgres://a@127.0.0.1:1/platform',
  };
  for (const [start, message] of [
    [startRedis, /^REDIS_URL: no Redis answers at 127\.0\.0\.1:1 /],
    [startKafka, /^KAFKA_BROKERS: nothing listens at 127\.0\.0\.1:1\./],
    [startPostgres, /^PostgreSQL at 127\.0\.0\.1:1 refuses: /],
  ] as const)
    await expect(start(context({ external }), report)).rejects.toThrow(message);
});

test('names the missing server to install, and continues without Kafka unless Kafka is required', async () => {
  process.env.PATH = folder;
  delete process.env.JAVA_HOME;
  await expect(startRedis(context(), report)).rejects.toThrow(/^There is no Redis: install redis-server/);
  await expect(startKafka(context(), report)).rejects.toThrow(/^There is no Kafka: .*KAFKA_BROKERS/);
  expect(await startKafka(context({ needsKafka: false }), report)).toBeNull();
});

test('leaves the ports of the services to them', async () => {
  const usual = await freePort();
  expect(await portFor(context({ usualPorts: true, reserved: [usual] }), usual)).not.toBe(usual);
});

test('continues without Docker if the image cannot be pulled', async () => {
  writeFileSync(join(folder, 'docker'), '#!/bin/sh\n[ "$1" = version ]\n', { mode: 0o700 });
  process.env.PATH = folder;
  await expect(startRedis(context(), report)).rejects.toThrow(/^There is no Redis: .*"docker pull redis:8"/);
});

test('creates the database again after a start that was interrupted', async () => {
  const stopping = new AbortController();
  const interrupted = startPostgres(context({ signal: stopping.signal }), report).catch(() => undefined);
  const created = () =>
    readdirSync(folder, { recursive: true }).some((name) => String(name).endsWith('PG_VERSION'));
  await until('initdb writes', created);
  stopping.abort(new Error('stopped'));
  await interrupted;
  await expect(startPostgres(context(), report)).rejects.toThrow('a server was started');
  expect(existsSync(state.path('postgres', 'global', 'pg_control'))).toBe(true);
});

test('refuses the data of another PostgreSQL version and does not change it', async () => {
  const file = state.path('postgres', 'PG_VERSION');
  mkdirSync(state.path('postgres'));
  writeFileSync(file, '15\n');
  await expect(startPostgres(context(), report)).rejects.toThrow(
    /created by PostgreSQL 15, but this is 18\.\d+\. Move the folder/,
  );
  expect(readFileSync(file, 'utf8')).toBe('15\n');
});
