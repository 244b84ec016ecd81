import type { z } from 'zod';
import { cacheInvalidation, modelChanged, recordChanged } from './events.ts';
import { schemaOf } from './openapi.ts';
import { release } from './release.ts';

type Json = Record<string, unknown>;

function message(name: string, title: string, schema: z.ZodType, example: Json): Json {
  return {
    name,
    title,
    contentType: 'application/json',
    headers: {
      type: 'object',
      properties: {
        traceparent: {
          type: 'string',
          description: 'Trace of the change (W3C Trace Context). The cache clear joins this trace.',
        },
      },
    },
    payload: schemaOf(schema, 'input'),
    bindings: { kafka: { key: { type: 'string', description: cacheInvalidation.key } } },
    examples: [{ name: 'typical', payload: example }],
  };
}

/** Returns the AsyncAPI 3 document of the Kafka events. */
export function asyncapi(): Json {
  const { topic, partitions, retentionMs, maxBytes, summary } = cacheInvalidation;
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Content Platform events',
      ...release,
      description: 'Events that a content server publishes to the platform through Kafka.',
    },
    defaultContentType: 'application/json',
    channels: {
      cacheInvalidation: {
        address: topic,
        description: `${summary} A value has at most ${maxBytes} bytes. Compress with gzip or not at all.`,
        messages: {
          recordChanged: { $ref: '#/components/messages/recordChanged' },
          modelChanged: { $ref: '#/components/messages/modelChanged' },
        },
        bindings: { kafka: { topic, partitions, topicConfiguration: { 'retention.ms': retentionMs } } },
      },
    },
    operations: {
      receiveInvalidation: {
        action: 'receive',
        channel: { $ref: '#/channels/cacheInvalidation' },
        summary: 'Clear the record, or every record of the model, from the cache.',
      },
    },
    components: {
      messages: {
        recordChanged: message('recordChanged', 'A record changed', recordChanged, {
          model: 'webform',
          id: 12,
          change: 'updated',
          occurred_at: '2026-01-31T09:30:00.000Z',
        }),
        modelChanged: message('modelChanged', 'Records of a model changed', modelChanged, {
          pattern: 'webform:*',
        }),
      },
    },
  };
}
