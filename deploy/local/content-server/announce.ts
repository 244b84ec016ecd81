import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  cacheInvalidation,
  clearModel,
  type InvalidationEvent,
  type Model,
} from '@content-platform/contract';
import { call, ContractViolation } from '@content-platform/contract/client';
import { Kafka, logLevel, Partitioners, type Producer } from 'kafkajs';
import { Problem } from '../problem.ts';
import { type AccessToken, createAccessToken, RefusedToken } from './access-token.ts';
import type { Saved } from './records.ts';
import type { Settings } from './settings.ts';

type Change = NonNullable<InvalidationEvent['change']>;

/** Announces changed records of one model to the platform. Call it only after the change is committed. */
export interface Announcer {
  /** Resolves with the outcome as text. @throws Problem after the last retry failed */
  announce: (records: readonly Saved[], change: Change) => Promise<string>;
  close: () => Promise<void>;
}

const maxTries = 8;

/** Returns the pause of Retry-After, else an exponential backoff, in ms. */
function pauseAfter(headers: Headers, attempt: number): number {
  const asked = Number(headers.get('retry-after') ?? Number.NaN) * 1_000;
  return Math.min(Number.isFinite(asked) ? asked : 250 * 2 ** (attempt - 1), 5_000);
}

/** Announces all records in one HTTP call, with retries. A 200 means that all are cleared. `pause` takes ms. */
export function httpAnnouncer(
  settings: Settings,
  pause: (ms: number) => Promise<unknown> = sleep,
): Announcer {
  const token = createAccessToken(settings);
  return {
    async announce(records) {
      const { model } = records[0]!;
      const ids = records.map(({ id }) => id);
      for (let attempt = 1; ; attempt += 1) {
        const outcome = await tryToClear(settings.gateway, token, { model, ids });
        if (typeof outcome === 'number') return `cleared by HTTP, ${keysDeleted(outcome)}`;
        const { status, headers, message } = outcome;
        if (status === 401 && attempt === 1) {
          // Changed keys or clients invalidate a token before it expires.
          token.drop();
          continue;
        }
        // A retry may help without a response (status 0), after too many requests, and after a server error.
        if ((status !== 0 && status !== 429 && status < 500) || attempt === maxTries)
          throw new Problem(
            `Gave up on announcing ${model} ${ids.join(', ')} after ${attempt} ${attempt === 1 ? 'try' : 'tries'}: ${message}`,
          );
        await pause(pauseAfter(headers, attempt));
      }
    },
    close: () => Promise.resolve(),
  };
}

/** Returns the number as text, for example `1 key deleted`. */
export const keysDeleted = (count: number): string => `${count} ${count === 1 ? 'key' : 'keys'} deleted`;

/** Returns the number of deleted keys, or the refusal. */
async function tryToClear(gateway: string, token: AccessToken, body: { model: Model; ids: number[] }) {
  try {
    const answer = await call(gateway, clearModel, { body, token: await token.get() });
    if (!answer.error) return answer.body.keys_deleted;
    const { status, headers, error } = answer;
    return { status, headers, message: `${status} ${error.message}` };
  } catch (error) {
    if (error instanceof RefusedToken) return error;
    if (error instanceof ContractViolation) throw error;
    return { status: 0, headers: new Headers(), message: `the gateway does not answer at ${gateway}` };
  }
}

/** Announces nothing, as a script does that only writes to the database. */
export const noAnnouncer = (): Announcer => ({
  announce: () => Promise.resolve('committed and not announced'),
  close: () => Promise.resolve(),
});

/** Announces through Kafka. Resolves when the brokers have the event; the clear follows soon after. */
export async function kafkaAnnouncer({ kafka, kafkaPassword: password }: Settings): Promise<Announcer> {
  if (!kafka) throw new Problem('This stack runs without Kafka: use --via http.');
  const client = new Kafka({
    clientId: 'content-server',
    brokers: kafka.split(','),
    ...(password && { sasl: { mechanism: 'scram-sha-512', username: 'content-server', password } }),
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1_000,
    requestTimeout: 5_000,
    retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 20 },
  });
  const producer = client.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    allowAutoTopicCreation: false,
  });
  await producer.connect().catch((error: Error) => {
    throw new Problem(`Kafka does not answer at ${kafka}: ${error.message}`);
  });
  return {
    announce: (records, change) => sendEvents(producer, records, change),
    close: () => producer.disconnect(),
  };
}

async function sendEvents(producer: Producer, records: readonly Saved[], change: Change): Promise<string> {
  const occurred_at = new Date().toISOString();
  const messages = records.map(({ model, id }) => ({
    key: `${model}:${id}`,
    value: JSON.stringify({ model, id, event_id: randomUUID(), change, occurred_at }),
  }));
  await producer.send({ topic: cacheInvalidation.topic, acks: -1, messages }).catch((error: Error) => {
    const keys = messages.map(({ key }) => key).join(', ');
    throw new Problem(`Gave up on announcing ${keys} through Kafka: ${error.message}`);
  });
  return 'announced through Kafka';
}
