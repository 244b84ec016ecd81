import { Kafka, logLevel, type Producer } from 'kafkajs';
import { cacheInvalidation } from '@content-platform/contract';
import { stack } from './stack.ts';

let producer: Promise<Producer> | undefined;

/** Returns a client of the stack's Kafka. */
export function kafkaClient(): Kafka {
  const { kafka } = stack();
  if (!kafka) throw new Error('the stack has no Kafka');
  return new Kafka({ clientId: 'test', brokers: kafka.split(','), logLevel: logLevel.NOTHING });
}

async function connect(): Promise<Producer> {
  const made = kafkaClient().producer({ allowAutoTopicCreation: false });
  await made.connect();
  return made;
}

export interface Sent {
  partition: number;
  offset: number;
}

/** Sends a message to the topic `cache-invalidation`. Resolves once the broker acknowledges it. */
export async function announce(
  value: string | Buffer | null,
  key: string | Buffer | null = null,
  headers: Record<string, string> = {},
): Promise<Sent> {
  producer ??= connect().catch((error: unknown) => {
    // The next event creates a new producer: Kafka may still be starting.
    producer = undefined;
    throw error;
  });
  const messages = [{ key, value, headers }];
  const [sent] = await (await producer).send({ topic: cacheInvalidation.topic, acks: -1, messages });
  return { partition: sent!.partition, offset: Number(sent!.baseOffset) };
}

export async function closeEvents(): Promise<void> {
  await (await producer)?.disconnect();
  producer = undefined;
}
