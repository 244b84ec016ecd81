import { expect, test } from '@jest/globals';
import { readConfig } from '@content-platform/chassis';
import { kafkaConfig } from './kafka.ts';

test('refuses a broker address without a port', () => {
  expect(() => readConfig(kafkaConfig, { KAFKA_BROKERS: 'one:9092,two' })).toThrow(
    'KAFKA_BROKERS must be addresses host:port, separated by commas, not "one:9092,two"',
  );
});
