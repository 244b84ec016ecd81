import { expect, test } from '@jest/globals';
import { readDemoConfig } from './config.ts';

const env = {
  DATABASE_URL: 'postgres://platform@postgres/platform',
  CONTENT_SERVER_DATABASE_URL: 'postgres://content_server@postgres/platform',
  GATEWAY_URL: 'http://gateway:8080',
  KAFKA_BROKERS: 'kafka:9092',
};

test('refuses the demo on a stack that other machines can reach', () => {
  const read = (BIND_ADDRESS: string) => readDemoConfig({ ...env, BIND_ADDRESS });
  expect(read('127.0.0.1')).toMatchObject({ KAFKA_BROKERS: ['kafka:9092'] });
  for (const address of ['0.0.0.0', '10.0.0.1', '::'])
    expect(() => read(address)).toThrow(`not "${address}"`);
});
