import type { KafkaMessage } from 'kafkajs';
import { beginSpan, type Span } from '@content-platform/chassis';

/** What is done for an event: a part of its sender's trace where its header `traceparent` names one, else a trace of its own. */
export function beginEvent(topic: string, partition: number, message: KafkaMessage): Span | undefined {
  return beginSpan(`process ${topic}`, {
    kind: 'consumer',
    parent: message.headers,
    attributes: {
      'messaging.system': 'kafka',
      'messaging.destination.name': topic,
      'messaging.destination.partition.id': String(partition),
      'messaging.kafka.offset': Number(message.offset),
    },
  });
}
