import { dirname, join } from 'node:path';
import { stackFilePath } from '../config.ts';
import { Problem } from '../problem.ts';
import { readStack } from '../stack-file.ts';
import { readJson } from '../state.ts';

/** Settings of a content server: URLs and credentials. */
export interface Settings {
  /** PostgreSQL with the role `content_server`. */
  database: string;
  gateway: string;
  /** Kafka brokers; null without Kafka. */
  kafka: string | null;
  /** Password of the Kafka user `content-server`; undefined: no login. */
  kafkaPassword?: string | undefined;
  clientId: string;
  clientSecret: string;
}

/** The settings that only the content server needs. A file beside stack.json has them. */
export type Credentials = Pick<Settings, 'database' | 'clientId' | 'clientSecret'>;
export const CREDENTIALS_FILE = 'content-server.json';

/** Returns the settings for the running stack. @throws Problem if no stack is running */
export function readSettings(stackFile = stackFilePath()): Settings {
  const { gateway, kafka } = readStack(stackFile);
  const file = join(dirname(stackFile), CREDENTIALS_FILE);
  const credentials = readJson<Credentials>(file);
  if (!credentials) throw new Problem(`${file} is missing: run npm start, which creates it.`);
  return { ...credentials, gateway, kafka };
}
