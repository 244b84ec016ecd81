import { expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { commonConfig, databaseUrl, list, readConfig, tokenConfig } from './config.ts';

const shape = { ...commonConfig(8081), DATABASE_URL: databaseUrl, ORIGINS: list().default([]) };
const database = { DATABASE_URL: 'postgres://u:hidden@localhost/platform' };

test('fills in defaults, parses numbers and treats empty as unset', () => {
  const config = readConfig(shape, { ...database, LOG_LEVEL: '' });
  expect(config).toMatchObject({
    PORT: 8081,
    HOST: '127.0.0.1',
    LOG_LEVEL: 'info',
    SLOW_QUERY_MS: 200,
    ORIGINS: [],
  });
});

test.each([
  [{ ...database, PORT: '8O81' }, 'PORT must be an integer from 1 to 64535, not "8O81"'],
  [{ ...database, PORT: '65000' }, 'PORT must be an integer from 1 to 64535, not "65000"'],
  [
    { ...database, OTEL_EXPORTER_OTLP_ENDPOINT: 'collector' },
    'OTEL_EXPORTER_OTLP_ENDPOINT must be a URL starting with http:// or https://, not "collector"',
  ],
  [
    { ...database, OTEL_TRACES_SAMPLER_ARG: '5%' },
    'OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not "5%"',
  ],
  [{ ...database, LOG_LEVEL: 'loud' }, 'LOG_LEVEL must be debug, info, warn or error, not "loud"'],
  [{}, 'DATABASE_URL is not set; it must be a URL starting with postgres:// or postgresql://'],
  [
    { DATABASE_URL: 'mysql://u:hidden@localhost/x' },
    'DATABASE_URL must be a URL starting with postgres:// or postgresql://, not what it is set to',
  ],
])('refuses %j in one line that names the variable and the allowed values', (env, message) => {
  expect(() => readConfig(shape, env)).toThrow(message);
});

test('normalizes the URLs of auth, and removes slashes at their end', () => {
  const env = { AUTH_URL: 'HTTP://Auth:8081/', AUTH_INTERNAL_URL: 'http://auth:9081/ ' };
  const expected = { AUTH_URL: 'http://Auth:8081', AUTH_INTERNAL_URL: 'http://auth:9081' };
  expect(readConfig(tokenConfig, env)).toEqual(expected);
});

test('reads a secret from a file, unless both variables are set', () => {
  const file = join(temporaryFolder(), 'url');
  writeFileSync(file, `${database.DATABASE_URL}\n`);
  expect(readConfig(shape, { DATABASE_URL_FILE: file }).DATABASE_URL).toBe(database.DATABASE_URL);
  expect(() => readConfig(shape, { ...database, DATABASE_URL_FILE: file })).toThrow('both set');
  expect(() => readConfig(shape, { DATABASE_URL_FILE: '/nowhere/url' })).toThrow('DATABASE_URL_FILE: ENOENT');
});
