import { beforeEach, expect, test } from '@jest/globals';
import type { RecordedSpan } from './span.ts';
import { createTracer } from './tracer.ts';

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

test('a request that fails is sent with all that was a part of it', () => {
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

test('a part that fails is no reason: the request was answered', () => {
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

test('what a part of it wants is kept', () => {
  const tracer = tracerWith(0);
  const request = tracer.begin('request', unsampled)!;
  expect(request.sentTraceId).toBeUndefined();
  request.run(() => tracer.active()!.keep());
  expect(request.sentTraceId).toBe(traceId);
  request.end();
  expect(names()).toEqual(['request']);
});

test('the sender of a request has chosen for those who follow', () => {
  const tracer = tracerWith(1);
  tracer.begin('not wanted', unsampled)!.end();
  tracer.begin('wanted', { kind: 'server', parent: from('01') })!.end();
  expect(names()).toEqual(['wanted']);
});

test.each([
  [1, '01'],
  [0, '00'],
])('those who follow are told: a ratio of %s is the flag %s', (ratio, flag) => {
  const tracer = tracerWith(ratio);
  const span = tracer.begin('request', { kind: 'server', parent: { traceparent: 'nonsense' } })!;
  expect(span.headers()['traceparent']).toMatch(new RegExp(`^00-${span.traceId}-[0-9a-f]{16}-${flag}$`));
});

test('what ends after its request shares its fate', () => {
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

test('a request that goes on and on does not fill the memory', () => {
  const tracer = tracerWith(1);
  const request = tracer.begin('request', { kind: 'server' })!;
  for (let n = 0; n < 5_000; n += 1) request.run(() => tracer.begin('query', { kind: 'client' })!.end());
  request.end();
  expect(sent.length).toBeLessThanOrEqual(1_001);
  expect(names()).toContain('request');
});

test('outside a request nothing is asked of others', () => {
  const tracer = tracerWith(1);
  expect(tracer.begin('query', { kind: 'client' })).toBeUndefined();
  const request = tracer.begin('request', { kind: 'server' })!;
  request.run(() => tracer.outside(() => expect(tracer.active()).toBeUndefined()));
});
