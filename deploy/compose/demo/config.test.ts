import { afterEach, expect, test } from '@jest/globals';
import { readDemoConfig } from './config.ts';

const names = ['BIND_ADDRESS', 'DATABASE_URL', 'CONTENT_SERVER_DATABASE_URL', 'GATEWAY_URL', 'KAFKA_BROKERS'];
const before = Object.fromEntries(names.map((name) => [name, process.env[name]]));
afterEach(() => {
  for (const name of names) delete process.env[name];
  for (const [name, value] of Object.entries(before)) if (value !== undefined) process.env[name] = value;
});

function given(BIND_ADDRESS: string): void {
  Object.assign(process.env, {
    BIND_ADDRESS,
    DATABASE_URL: 'postgres://platform@postgres/platform',
    CONTENT_SERVER_DATABASE_URL: 'postgres://content_server@postgres/platform',
    GATEWAY_URL: 'http://gateway:8080',
    KAFKA_BROKERS: 'kafka:9092',
  });
}

test('the demo is for a stack that this machine alone can reach', () => {
  given('127.0.0.1');
  expect(readDemoConfig()).toMatchObject({ KAFKA_BROKERS: ['kafka:9092'] });
  for (const address of ['0.0.0.0', '10.0.0.1', '::']) {
    given(address);
    expect(readDemoConfig).toThrow(`not "${address}"`);
  }
});
