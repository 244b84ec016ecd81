import { tracingChannel } from 'node:diagnostics_channel';
import { beginSpan, type Span } from '../tracing.ts';

/** One command on ioredis's diagnostics channel; the same object from its start to its end. */
interface CommandMessage {
  command: string;
  error?: unknown;
}

/** Creates a span for each Redis command that is part of a trace. */
export function traceRedis(): void {
  const channel = tracingChannel<'ioredis:command', CommandMessage>('ioredis:command');
  const spans = new WeakMap<object, Span>();
  channel.start.subscribe((message) => {
    const name = (message as CommandMessage).command.toUpperCase();
    const attributes = { 'db.system.name': 'redis', 'db.operation.name': name };
    const span = beginSpan(name, { kind: 'client', attributes });
    if (span) spans.set(message as object, span);
  });
  channel.error.subscribe((message) => spans.get(message as object)?.fail((message as CommandMessage).error));
  channel.asyncEnd.subscribe((message) => spans.get(message as object)?.end());
}
