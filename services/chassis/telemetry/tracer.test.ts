import { beforeEach, expect, test } from '@jest/globals';
import { createLogger } from '../logger.ts';
import { createThrottledWarning } from './start.ts';
import { createTracer, type RecordedSpan } from './tracer.ts';

const traceId = 'a'.repeat(32);
const from = (flags: string) => ({ traceparent: `00-${traceId}-${'b'.repeat(16)}-${flags}` });
const unsampled = { kind: 'server', parent: from('00') } as const;

let sent: RecordedSpan[];
beforeEach(() => {
  sent = [];
});

function tracerWith(ratio: number) {
  return createTracer({ ratio, send: (span) => sent.push(span), shutdown: () => Promise.resolve() });
}
const names = () => sent.map(({ name }) => name);

test('sends a failed request with all of its spans', () => {
  const tracer = tracerWith(0);
  const request = tracer.begin('request', unsampled)!;
  request.run(() => tracer.begin('query', { kind: 'client' })!.end());
  request.fail(new TypeError('secret'));
  expect(names()).toEqual([]);
  request.end();
  expect(names()).toEqual(['query', 'request']);
  const [query, root] = sent;
  expect(query!.parentId).toBe(root!.id);
  expect(root!.attributes).toEqual({ 'error.type': 'TypeError' });
});

test('a failed client span alone does not send the trace', () => {
  const tracer = tracerWith(0);
  const request = tracer.begin('request', unsampled)!;
  request.run(() => {
    const query = tracer.begin('query', { kind: 'client' })!;
    query.fail();
    query.end();
  });
  request.end();
  expect(names()).toEqual([]);
});

test('follows the sampling decision of the sender', () => {
  const tracer = tracerWith(1);
  tracer.begin('not wanted', unsampled)!.end();
  tracer.begin('wanted', { kind: 'server', parent: from('01'), beganAt: 5 })!.end();
  expect(sent).toMatchObject([{ name: 'wanted', beganAt: 5 }]);
});

test.each([
  [1, '01'],
  [0, '00'],
])('a ratio of %s sends the flag %s to other processes', (ratio, flag) => {
  const tracer = tracerWith(ratio);
  const span = tracer.begin('request', { kind: 'server', parent: { traceparent: 'nonsense' } })!;
  expect(span.headers()['traceparent']).toMatch(new RegExp(`^00-${span.traceId}-[0-9a-f]{16}-${flag}$`));
});

test('a span that ends after its request is sent if the request was', () => {
  for (const [ratio, expected] of [
    [0, []],
    [1, ['request', 'late']],
  ] as const) {
    sent = [];
    const tracer = tracerWith(ratio);
    const request = tracer.begin('request', { kind: 'server' })!;
    const late = request.run(() => tracer.begin('late', { kind: 'client' })!);
    request.end();
    late.end();
    expect(names()).toEqual(expected);
  }
});

test('bounds the spans of an endless request', () => {
  const tracer = tracerWith(1);
  const request = tracer.begin('request', { kind: 'server' })!;
  for (let n = 0; n < 5_000; n += 1) request.run(() => tracer.begin('query', { kind: 'client' })!.end());
  request.end();
  expect(sent.length).toBeLessThanOrEqual(1_001);
  expect(names()).toContain('request');
});

test('makes no client spans outside a request', () => {
  const tracer = tracerWith(1);
  expect(tracer.begin('query', { kind: 'client' })).toBeUndefined();
  const request = tracer.begin('request', { kind: 'server' })!;
  request.run(() => tracer.outside(() => expect(tracer.active()).toBeUndefined()));
});

test('logs an unavailable collector once a minute', () => {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
  let ms = 0;
  const complain = createThrottledWarning(createLogger('test', 'info', { write }), () => ms);
  for (; ms < 150_000; ms += 100) complain(new Error('connect ECONNREFUSED'));
  expect(lines.map(({ batches }) => batches)).toEqual([1, 600, 600]);
});
