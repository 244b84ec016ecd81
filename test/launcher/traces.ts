import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { logout, readContent } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { emails, logIn, password, tokenOf } from '../support/accounts.ts';
import { type SentSpan, startCollector } from '../support/collector.ts';
import { withDatabase } from '../support/connections.ts';
import { announce, closeEvents } from '../support/events.ts';
import { closeRecords, database, freshId, save } from '../support/records.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';

/** The processes under test must start with `collector.environment`. */
export const collector = await startCollector();
let token: string;

const hex = (bytes: number) => randomBytes(bytes).toString('hex');
function foreignTrace() {
  const traceId = hex(16);
  return { traceId, traceparent: `00-${traceId}-${hex(8)}-01` };
}

const ofTrace = (traceId: string) => collector.spans.filter((span) => span.traceId === traceId);
/** Resolves with the first matching span of a trace once the collector has it. */
const spanOf = (traceId: string, what: string, matches: (span: SentSpan) => boolean) =>
  until(`the span of ${what} was sent`, () => ofTrace(traceId).find(matches));
const rootOf = (requestId: string) =>
  until('the gateway has sent its span', () =>
    collector.spans.find(({ attributes }) => attributes['request_id'] === requestId),
  );
const isServerOf = (name: string) => (span: SentSpan) => span.service === name && span.kind === 2;
const isProcessing = ({ kind }: SentSpan) => kind === 5;
const isCommand = ({ service, name }: SentSpan) => service === 'content-cache' && /^EVAL(SHA)?$/.test(name);

/** Reads a record with a new request id. Resolves with the id and the gateway's span once the collector has it. */
async function readTraced(id: number, headers: Record<string, string> = {}) {
  const requestId = randomUUID();
  await call(stack().gateway, readContent, {
    params: { model: 'webform', id },
    token,
    headers: { ...headers, 'X-Request-Id': requestId },
  });
  return { requestId, root: await rootOf(requestId) };
}

/** Returns the span names from the trace's root to this span, each as `service: name`. */
function pathTo(span: SentSpan): string[] {
  const parent = ofTrace(span.traceId).find(({ spanId }) => spanId === span.parentSpanId);
  return [...(parent ? pathTo(parent) : []), `${span.service}: ${span.name}`];
}

/** Tests the traces of the stack in the folder. */
export function testTraces(folder: string): void {
  const logOfCache = () => readFileSync(join(folder, 'logs', 'content-cache.log'), 'utf8');
  const usualStack = process.env.STACK_FILE;
  beforeAll(async () => {
    process.env.STACK_FILE = join(folder, 'stack.json');
    token = await tokenOf(stack().gateway, 'user');
  });
  afterAll(async () => {
    await closeEvents();
    await closeRecords();
    process.env.STACK_FILE = usualStack;
  });

  test('a cache miss is one trace from the gateway to PostgreSQL and Redis', async () => {
    const id = freshId();
    await save('webform', id, 'One');
    const { root } = await readTraced(id);
    const parents = [
      'gateway: GET /api/content/:model/:id',
      'gateway: GET content-cache',
      'content-cache: GET /api/content/:model/:id',
    ];
    const query = await spanOf(root.traceId, 'the query', ({ name }) => name === 'read_record');
    const command = await spanOf(root.traceId, 'the command', isCommand);
    await until('the parents of the query were sent', () => pathTo(query).length > parents.length);
    expect(pathTo(query)).toEqual([...parents, 'content-cache: read_record']);
    expect(pathTo(command).slice(0, -1)).toEqual(parents);
    expect(query.attributes).toMatchObject({
      'db.system.name': 'postgresql',
      'db.query.text': expect.stringMatching(/^SELECT .* WHERE model = \$1 AND id = \$2$/),
    });
    expect(root.attributes).toMatchObject({ 'http.response.status_code': 200, 'http.request.method': 'GET' });
    // A trace contains neither the record's id nor a token.
    expect(JSON.stringify(ofTrace(root.traceId))).not.toMatch(new RegExp(`${id}|eyJ`));
  });

  test('a logout is one trace that includes the call to the devices service', async () => {
    const session = await logIn(emails.user, password, stack().gateway);
    const requestId = randomUUID();
    await call(stack().gateway, logout, {
      token: session.token,
      body: { fcm_token: 'a-device' },
      headers: { 'X-Request-Id': requestId },
    });
    const { traceId } = await rootOf(requestId);
    const devicesSpan = await spanOf(traceId, 'devices', isServerOf('devices'));
    const isCall = ({ name, kind }: SentSpan) => name === 'POST /unregister' && kind === 3;
    const authSpan = await spanOf(traceId, "auth's call", isCall);
    expect(devicesSpan).toMatchObject({ name: 'POST /unregister', parentSpanId: authSpan.spanId });
    expect(authSpan).toMatchObject({ service: 'auth' });
  });

  test("links to a client's trace instead of joining it", async () => {
    const { traceId, traceparent } = foreignTrace();
    const { root } = await readTraced(1, { traceparent, tracestate: 'theirs=1', baggage: 'user=1' });
    await spanOf(root.traceId, 'the service', isServerOf('content-cache'));
    expect(root.links.map((link) => link.traceId)).toEqual([traceId]);
    expect(root.parentSpanId ?? '').toBe('');
    expect(root.traceId).not.toBe(traceId);
    expect(ofTrace(traceId)).toEqual([]);
    const ours = ofTrace(root.traceId).filter((span) => span !== root);
    expect(JSON.stringify(ours)).not.toContain('theirs=1');
  });

  test("an event's trace continues into the clear and the log", async () => {
    const id = freshId();
    const { traceId, traceparent } = foreignTrace();
    await announce(JSON.stringify({ model: 'webform', id }), `webform:${id}`, { traceparent });
    const processing = await spanOf(traceId, 'the event', isProcessing);
    expect(processing).toMatchObject({
      service: 'content-cache',
      name: 'process cache-invalidation',
      parentSpanId: traceparent.split('-')[2],
    });
    const cleared = await spanOf(traceId, 'the clear', isCommand);
    expect(cleared).toMatchObject({ parentSpanId: processing.spanId });
    const isLine = (line: string) => line.includes(`webform:${id}`) && line.includes('"cleared"');
    const line = await until('it is in the log', () => logOfCache().split('\n').find(isLine));
    expect(JSON.parse(line)).toMatchObject({ trace_id: traceId });
  });

  test('an event that cannot be processed is a failed span of its trace', async () => {
    const { traceId, traceparent } = foreignTrace();
    await announce('not JSON', 'x', { traceparent });
    const processing = await spanOf(traceId, 'the event', isProcessing);
    expect(processing).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'not_json' } });
  });

  test('an event without a trace starts a new one', async () => {
    const before = collector.spans.length;
    await announce(JSON.stringify({ model: 'webform', id: freshId() }));
    const processing = await until('its span was sent', () =>
      collector.spans.slice(before).find(isProcessing),
    );
    expect(processing.parentSpanId ?? '').toBe('');
  });

  test('slow requests and slow queries are recorded with their trace ids', async () => {
    const id = freshId();
    await save('webform', id, 'Slow');
    const client = await database().connect();
    await client.query('BEGIN; LOCK TABLE content.record IN ACCESS EXCLUSIVE MODE');
    const reading = readTraced(id);
    // The comparison of changes with the cache waits, too.
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%id = $2'`;
    await until('the read waits for the lock', async () => (await database().query(waiting)).rows.length > 0);
    await client.query('SELECT pg_sleep(0.6)');
    await client.query('COMMIT');
    client.release();
    const { requestId, root } = await reading;
    await withDatabase(stack().logs, async (logs) => {
      for (const table of ['slow_request', 'slow_query']) {
        const text = `SELECT trace_id FROM logs.${table} WHERE request_id = $1`;
        const row = await until(
          `it is in ${table}`,
          async () => (await logs.query(text, [requestId])).rows[0],
        );
        expect(row).toEqual({ trace_id: root.traceId });
      }
    });
  });

  test('OpenMetrics durations carry the trace id as an exemplar', async () => {
    const { root } = await readTraced(1);
    for (const name of ['gateway', 'content-cache']) {
      const scrape = (headers = {}) =>
        fetch(`${stack().services[name]!.internal}/metrics`, { headers }).then((response) => response.text());
      const open = await scrape({ Accept: 'application/openmetrics-text; version=1.0.0' });
      const exemplar = `route="/api/content/:model/:id".* # \\{trace_id="${root.traceId}"\\} `;
      expect(open).toMatch(new RegExp(`^http_request_duration_seconds_bucket\\{.*${exemplar}`, 'm'));
      expect(await scrape()).not.toContain('trace_id');
    }
  });
}
