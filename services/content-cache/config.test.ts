import { expect, test } from '@jest/globals';
import { readConfig } from '@content-platform/chassis';
import { models } from '@content-platform/contract';
import { contentCacheConfig } from './config.ts';

const modelNames = `a list of ${models.join(', ')}, separated by commas`;

test.each([
  ['KAFKA_BROKERS', 'one:9092,two', 'addresses host:port, separated by commas'],
  ['CONTENT_RESTRICTED_MODELS', 'accesscode,letter', modelNames],
])('refuses %s=%s', (name, value, allowed) => {
  const env = {
    DATABASE_URL: 'postgres://u@127.0.0.1/x',
    SERVICE_SECRET: 'a-service-secret-that-no-auth-knows',
    [name]: value,
  };
  const message = `${name} must be ${allowed}, not "${value}"`;
  expect(() => readConfig(contentCacheConfig, env)).toThrow(message);
});
