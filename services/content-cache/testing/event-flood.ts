import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { models, type FailedJobClass, type Model } from '@content-platform/contract';
import { createRandom } from '../cache/testing/random.ts';
import { until } from '../../../test/support/wait.ts';
import type { TestKafka } from './kafka.ts';
import { unprocessableEvent } from './unprocessable-events.ts';
import type { TestStores } from './test-stores.ts';

/** A record: with its own event, or a hot record that many events announce. */
interface ChangedRecord {
  model: Model;
  id: number;
  isHot: boolean;
}
type FloodEvent = ChangedRecord | { class: FailedJobClass; value: Buffer | null };

/** An event that the broker has accepted, and the version of its change. */
export interface Announced extends ChangedRecord {
  version: number;
  offset: number;
}

const PARTITIONS = 8;
const BATCH = 50;
export const HOT = 50;

/** Returns the n-th event, from 0. Of a hundred, one is poison, nine are of hot records, ninety of separate records. */
export function eventAt(n: number, seed: number): FloodEvent {
  if (n % 100 === 99) return unprocessableEvent((n + 1) / 100, createRandom(seed + n));
  if (n % 10 === 0) return { model: 'condition', id: 1 + ((n / 10) % HOT), isHot: true };
  return { model: models[n % models.length]!, id: 1_000 + n, isHot: false };
}

const update = `UPDATE content.record AS r SET title = 'Changed' FROM unnest($1::text[], $2::bigint[]) AS c (model, id)
  WHERE r.model = c.model AND r.id = c.id RETURNING r.model, r.id, r.version`;

export const digestOf = (value: Buffer | null): string | null =>
  value && createHash('sha256').update(value).digest('hex');

/** Commits changes at a given rate, and sends each event until the broker accepts it. */
export function createFlood(sql: TestStores['sql'], kafka: TestKafka, events: number, seed: number) {
  const producer = kafka.kafka.producer({ allowAutoTopicCreation: false });
  /** By partition, in the order of their offsets. */
  const announced: Announced[][] = Array.from({ length: PARTITIONS }, () => []);

  async function commit(changed: ChangedRecord[]): Promise<Map<string, number>> {
    const rows = await sql<{ model: Model; id: string; version: string }>(
      update,
      changed.map(({ model }) => model),
      changed.map(({ id }) => id),
    );
    return new Map(rows.map(({ model, id, version }) => [`${model}:${id}`, Number(version)]));
  }

  async function sendBatch(numbers: number[]): Promise<void> {
    const batch = numbers.map((n) => ({ n, event: eventAt(n, seed) }));
    const versions = await commit(batch.flatMap(({ event }) => ('model' in event ? [event] : [])));
    const messages = batch.map(({ n, event }) => {
      const isRecord = 'model' in event;
      return {
        key: isRecord ? `${event.model}:${event.id}` : null,
        value: isRecord ? JSON.stringify({ model: event.model, id: event.id }) : event.value,
        partition: (isRecord ? event.id : Math.floor(n / 100)) % PARTITIONS,
        headers: { n: String(n) },
      };
    });
    const taken = await until(
      'the broker accepted the events',
      () =>
        producer.send({ topic: kafka.topic, acks: -1, messages }).catch((error: unknown) => {
          flood.sentAgain += messages.length;
          throw error;
        }),
      300_000,
    );
    const next = new Map(taken.map(({ partition, baseOffset }) => [partition, Number(baseOffset)]));
    for (const [index, { event }] of batch.entries()) {
      const { partition } = messages[index]!;
      const offset = next.get(partition)!;
      next.set(partition, offset + 1);
      if ('model' in event)
        announced[partition]!.push({
          ...event,
          offset,
          version: versions.get(`${event.model}:${event.id}`)!,
        });
    }
    flood.sent += numbers.length;
  }

  const flood = {
    announced,
    sent: 0,
    /** events of batches whose reply was lost: the topic may have them twice */
    sentAgain: 0,
    async run(perSecond: number): Promise<void> {
      await producer.connect();
      const began = performance.now();
      for (let first = 0; first < events; first += BATCH) {
        await sendBatch(Array.from({ length: Math.min(BATCH, events - first) }, (_, index) => first + index));
        await sleep(Math.max(0, began + (1_000 * flood.sent) / perSecond - performance.now()));
      }
      await producer.disconnect();
    },
  };
  return flood;
}

export async function readLog(kafka: TestKafka) {
  const entries: { n: number; partition: number; offset: string; digest: string | null }[] = [];
  const total = (await kafka.offsets()).reduce((sum, { high }) => sum + high, 0);
  const consumer = kafka.kafka.consumer({ groupId: `${kafka.group}-log` });
  await consumer.connect();
  await consumer.subscribe({ topic: kafka.topic, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message: { offset, value, headers } }) => {
      entries.push({ n: Number(String(headers!['n'])), partition, offset, digest: digestOf(value) });
    },
  });
  await until('the whole log is read', () => entries.length >= total, 300_000);
  await consumer.disconnect();
  await kafka.admin.deleteGroups([`${kafka.group}-log`]).catch(() => undefined);
  return entries;
}
