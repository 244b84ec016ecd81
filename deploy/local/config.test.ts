import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { environmentWith, readLauncherConfig } from './config.ts';

afterEach(() => void delete process.env.REDIS_URL_FILE);

test("reads the URLs of the user's own servers", () => {
  const databaseUrl = 'postgres://owner:password@127.0.0.1/platform';
  const kafkaBrokers = 'one:9092, two:9092';
  const env = { DATABASE_URL: databaseUrl, REDIS_URL: 'redis://localhost', KAFKA_BROKERS: kafkaBrokers };
  expect(readLauncherConfig(env).external).toEqual({
    databaseUrl,
    redisUrl: 'redis://localhost',
    kafkaBrokers: 'one:9092,two:9092',
  });
});

test('reads the password of content_server from a variable or a file', () => {
  const file = join(temporaryFolder(), 'password');
  writeFileSync(file, 'from a file\n');
  expect(readLauncherConfig({ CONTENT_SERVER_PASSWORD: 'of mine' }).contentServerPassword).toBe('of mine');
  expect(readLauncherConfig({ CONTENT_SERVER_PASSWORD_FILE: file }).contentServerPassword).toBe(
    'from a file',
  );
  expect(readLauncherConfig({ CONTENT_SERVER_PASSWORD: '' }).contentServerPassword).toBeUndefined();
});

test.each([
  [{ DATABASE_URL: 'secret' }, /^DATABASE_URL must be a URL starting with postgres:\/\/ or .*set to$/],
  [
    { KAFKA_BROKERS: 'one:9092,two' },
    'KAFKA_BROKERS must be addresses host:port, separated by commas, not "one',
  ],
  [{ GATEWAY_PORT: '80' }, 'GATEWAY_PORT must be an integer from 1024 to 64000, not "80"'],
  [{ IDENTITY_DEMO: 'yes' }, 'IDENTITY_DEMO must be 1, or not set, not "yes"'],
])('refuses %p', (env, message) => {
  expect(() => readLauncherConfig(env)).toThrow(message);
});

test('an added variable replaces its _FILE variable', () => {
  process.env.REDIS_URL_FILE = '/run/redis-url';
  expect(environmentWith({ REDIS_URL: 'redis://here' })).not.toHaveProperty('REDIS_URL_FILE');
  expect(environmentWith({})).toHaveProperty('REDIS_URL_FILE', '/run/redis-url');
});
