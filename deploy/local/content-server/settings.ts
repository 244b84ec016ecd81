import { dirname, join } from 'node:path';
import { stackFilePath } from '../config.ts';
import { Problem } from '../problem.ts';
import { readStack } from '../stack-file.ts';
import { readJson } from '../state.ts';

/** What a content server has to be told: where things are, and who it is. */
export interface Settings {
  /** PostgreSQL with the role `content_server`. */
  database: string;
  gateway: string;
  /** Brokers; null where there is no Kafka. */
  kafka: string | null;
  clientId: string;
  clientSecret: string;
}

/** content-server.json beside stack.json: what the content server knows and nobody else needs. */
export type Credentials = Pick<Settings, 'database' | 'clientId' | 'clientSecret'>;
export const CREDENTIALS_FILE = 'content-server.json';

/** The settings for the stack that runs now. @throws Problem when there is none */
export function readSettings(stackFile = stackFilePath()): Settings {
  const { gateway, kafka } = readStack(stackFile);
  const file = join(dirname(stackFile), CREDENTIALS_FILE);
  const credentials = readJson<Credentials>(file);
  if (!credentials) throw new Problem(`There is no ${file}: npm start makes it.`);
  return { ...credentials, gateway, kafka };
}
