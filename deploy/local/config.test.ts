import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { environmentWith, readConfig } from './config.ts';

const url = 'postgres://owner:password@127.0.0.1/platform';
let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'config-test-'));
  file = join(folder, 'url');
  writeFileSync(file, `${url}\n`);
});
afterEach(() => {
  rmSync(folder, { recursive: true });
  delete process.env.REDIS_URL_FILE;
});

test("servers of the user's own, in variables or files", () => {
  const env = {
    DATABASE_URL_FILE: file,
    REDIS_URL: ' redis://localhost ',
    KAFKA_BROKERS: 'one:9092, two:9092',
  };
  expect(readConfig(env).external).toEqual({
    databaseUrl: url,
    redisUrl: 'redis://localhost',
    kafkaBrokers: 'one:9092, two:9092',
  });
  expect(readConfig({ DATABASE_URL: ' ', REDIS_URL: '' }).external).toEqual({});
});

test.each([
  [
    { DATABASE_URL: 'secret' },
    'DATABASE_URL is no address: give one that starts with postgres:// or postgresql://.',
  ],
  [{ REDIS_URL: 'http://here' }, 'REDIS_URL is no address: give one that starts with redis:// or rediss://.'],
  [
    { KAFKA_BROKERS: 'one:9092,two' },
    'KAFKA_BROKERS is "one:9092,two": give addresses host:port, separated by commas.',
  ],
  [{ GATEWAY_PORT: '80 80' }, 'GATEWAY_PORT is "80 80": give a port from 1024 to 64000.'],
  [{ GATEWAY_PORT: '80' }, 'GATEWAY_PORT is "80": give a port from 1024 to 64000.'],
  [{ IDENTITY_DEMO: 'yes' }, 'IDENTITY_DEMO is "yes": give 1, or leave it out.'],
  [{ DATABASE_URL_FILE: '/nowhere/url' }, /^DATABASE_URL_FILE: ENOENT.*\/nowhere\/url/],
])('%p is refused', (env, message) => {
  expect(() => readConfig(env)).toThrow(message);
});

test('a variable and its file are not both taken', () => {
  const both = 'DATABASE_URL and DATABASE_URL_FILE are both set: give one of them.';
  expect(() => readConfig({ DATABASE_URL: url, DATABASE_URL_FILE: file })).toThrow(both);
  process.env.REDIS_URL_FILE = file;
  expect(environmentWith({ REDIS_URL: 'redis://here' })).not.toHaveProperty('REDIS_URL_FILE');
  expect(environmentWith({})).toHaveProperty('REDIS_URL_FILE', file);
});
