import { z } from 'zod';
import { databaseUrl, list, readConfig, url } from '@content-platform/chassis/config';
import { isLocalHost } from '../../local/seed.ts';

const demoConfig = {
  BIND_ADDRESS: z.string().refine(isLocalHost, 'a loopback address as 127.0.0.1 (demo passwords are public)'),
  DATABASE_URL: databaseUrl,
  CONTENT_SERVER_DATABASE_URL: databaseUrl.describe('The same database, for the role `content_server`'),
  GATEWAY_URL: url('http:', 'https:').describe('The gateway'),
  KAFKA_BROKERS: list().describe('Kafka brokers, host:port, separated by commas'),
  KAFKA_PASSWORD: z
    .string()
    .optional()
    .describe('Password of the Kafka user `content-server`; unset: no login'),
};

export const readDemoConfig = (env: NodeJS.ProcessEnv = process.env) => readConfig(demoConfig, env);
