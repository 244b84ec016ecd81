import { createRequire } from 'node:module';
import { Kafka, logLevel, type SASLOptions } from 'kafkajs';
import { z } from 'zod';
import { ConfigError, flag, list, type Logger } from '@content-platform/chassis';

const address = /^[\w.-]+:\d{1,5}$/;

/** Settings of the connection to Kafka, for a service's config. */
export const kafkaConfig = {
  KAFKA_BROKERS: list(z.string().regex(address, 'addresses host:port, separated by commas'))
    .default([])
    .describe('Addresses of the Kafka brokers as host:port, separated by commas; empty: no Kafka'),
  KAFKA_SSL: flag().describe('Whether connections to the brokers use TLS: `true` or `false`'),
  KAFKA_SASL_MECHANISM: z
    .enum(['plain', 'scram-sha-256', 'scram-sha-512'], 'plain, scram-sha-256 or scram-sha-512')
    .optional()
    .describe('SASL mechanism of the brokers: `plain`, `scram-sha-256` or `scram-sha-512`; unset: no login'),
  KAFKA_SASL_USERNAME: z.string().optional().describe('SASL user name'),
  KAFKA_SASL_PASSWORD: z.string().optional().describe('SASL password'),
};

type Settings = z.output<z.ZodObject<typeof kafkaConfig>>;

function login(settings: Settings): { sasl?: SASLOptions } {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username } = settings;
  const { KAFKA_SASL_PASSWORD: password } = settings;
  if (!mechanism) return {};
  if (username && password) return { sasl: { mechanism, username, password } as SASLOptions };
  throw new ConfigError(
    'KAFKA_SASL_MECHANISM is set, so KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD must be, too',
  );
}

// kafkajs 2.2.4 checks each queue every millisecond, even an empty one (its issue 1704). createKafka() prevents this.
const { prototype: requestQueue } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as {
  prototype: { pending: unknown[]; throttledUntil: number; scheduleCheckPendingRequests(): void };
};
const scheduleCheck = requestQueue.scheduleCheckPendingRequests;

/** Creates a Kafka client with time limits that logs to `logger`. Returns undefined if no brokers are set. */
export function createKafka(settings: Settings, clientId: string, logger: Logger): Kafka | undefined {
  if (settings.KAFKA_BROKERS.length === 0) return undefined;
  requestQueue.scheduleCheckPendingRequests = function () {
    if (this.pending.length > 0 || this.throttledUntil > Date.now()) scheduleCheck.call(this);
  };
  return new Kafka({
    clientId,
    brokers: settings.KAFKA_BROKERS,
    ssl: settings.KAFKA_SSL,
    ...login(settings),
    connectionTimeout: 1_000,
    requestTimeout: 5_000,
    retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 30 },
    logCreator:
      () =>
      ({ level, log: { message, error } }) => {
        // kafkajs reports each failed attempt as an error and then retries, so its errors are logged as warnings.
        const name = level === logLevel.ERROR || level === logLevel.WARN ? 'warn' : 'debug';
        logger[name]({ kafka: error as unknown }, `kafka: ${message}`);
      },
  });
}
