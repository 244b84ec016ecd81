import { afterAll, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { readContent, upload } from '@content-platform/contract';
import { newUser, tokenOf } from '../support/accounts.ts';
import { newPdf, uploaded } from '../support/media.ts';
import { startOwnStack } from '../support/own-stack.ts';
import { freshId, save } from '../support/records.ts';
import { resourcesOf } from '../support/resources.ts';
import { writeResult } from '../support/results.ts';
import { nonReadingClient, slowKinds, startSlowClients, type SlowClient } from '../support/slow-clients.ts';
import { stack } from '../support/stack.ts';
import { percentile } from '../bench/percentiles.ts';
import { startTraffic } from '../support/traffic.ts';
import { useStarted } from '../support/use-started.ts';
import { until } from '../support/wait.ts';

/** Number of sockets open at all times; fewer suffice to try out the test. */
const many = Number(process.env['SLOW_CLIENTS'] ?? 2_000);
const heldMs = 60_000;
const idle = Number(process.env['IDLE_CLIENTS'] ?? 10_000);
/** The platform's latency target for other clients, in ms. */
const targetMs = 500;

/** Limits in gateway/timeouts.ts: the request limits, the check interval and the draining time, in ms. */
const [headersMs, requestMs, closingMs] = [15_000, 180_000, 5_000 + 5_000];
const idleMs = 15_000 + 2_800 + upload.replyWithinSeconds * 1_000 + 5_000;
/**
 * Time limit until each kind is closed, in ms. A silent connection is checked after the idle time, and once more if
 * data went out before the first check.
 */
const closedWithinMs: Record<string, number> = {
  headers: headersMs + closingMs,
  silent: headersMs + closingMs,
  json: requestMs + closingMs,
  upload: requestMs + closingMs,
  refused: closingMs,
  reader: 2 * idleMs + closingMs,
};
/** Tolerance for a busy machine, in ms. */
const slackMs = 10_000;

const result: Record<string, unknown> = {};
afterAll(() => writeResult('faults', 'slow-clients', result));
useStarted(startOwnStack, 300_000);

/** Reads a cached record twenty times a second and records the latencies in ms. */
async function startReads() {
  const id = freshId();
  await save('webform', id, 'Read meanwhile');
  const token = await tokenOf(stack().gateway, 'user');
  const path = readContent.path.replace(':model', 'webform').replace(':id', String(id));
  const times: number[] = [];
  let refused = 0;
  const failures: string[] = [];
  let answeredInARow = 0;
  const traffic = startTraffic(20, async () => {
    const start = performance.now();
    const headers = { Authorization: `Bearer ${token}` };
    try {
      const reply = await fetch(stack().gateway + path, { headers });
      const text = await reply.text();
      answeredInARow = reply.ok ? answeredInARow + 1 : 0;
      if (reply.status === 503 && reply.headers.has('retry-after')) refused += 1;
      else if (!reply.ok) failures.push(text);
    } catch (error) {
      answeredInARow = 0;
      failures.push(String((error as Error).cause ?? error));
    }
    times.push(performance.now() - start);
  });
  return {
    async untilAnswered() {
      answeredInARow = 0;
      await until('twenty reads are answered', () => answeredInARow >= 20, 60_000);
    },
    async stop() {
      await traffic.stop();
      const at = (part: number) => Math.round(percentile(times, part));
      const [p50, p95, p99, max] = [at(0.5), at(0.95), at(0.99), at(1)];
      return { reads: times.length, refused, failures, p50, p95, p99, max };
    },
  };
}

/** Larger than the buffers on the way to a client. */
const large = Buffer.concat([newPdf(), Buffer.alloc(9_000_000, ' ')]);

/** Uploads a file for each user and returns the paths. */
async function largeFiles(tokens: readonly string[]) {
  return Promise.all(
    tokens.map(async (token) => {
      const { variants } = await uploaded(token, Buffer.concat([large, newPdf()]), 'large.pdf');
      return { path: new URL(variants[0]!.url).pathname, token };
    }),
  );
}

/**
 * Returns the kind. An upload without a free slot is refused at once, and its body is read during the draining time.
 */
const outcome = ({ kind, status }: SlowClient) => (kind === 'upload' && status !== 408 ? 'refused' : kind);

/** Summarizes the outcome of each kind; times in s. */
function summary(clients: readonly SlowClient[]) {
  const kinds = Map.groupBy(clients, outcome);
  return Object.fromEntries(
    [...kinds].map(([kind, group]) => {
      const times = group.flatMap(({ openedAt, closedAt }) =>
        closedAt ? [(closedAt - openedAt) / 1_000] : [],
      );
      const statuses: Record<string, number> = {};
      for (const { status } of group) statuses[status ?? 'none'] = (statuses[status ?? 'none'] ?? 0) + 1;
      return [
        kind,
        {
          clients: group.length,
          closed: times.length,
          statuses,
          firstClosed: Math.round(Math.min(...times)),
          lastClosed: Math.round(Math.max(...times)),
          limit: closedWithinMs[kind]! / 1_000,
        },
      ];
    }),
  );
}

test(`${idle} idle connections: measures their cost and expects it to be released`, async () => {
  const { hostname, port } = new URL(stack().gateway);
  const before = await resourcesOf('gateway');
  const reads = await startReads();
  const sockets: Socket[] = [];
  /** Uses a loopback address per hundred sockets: each has 28,000 ports (Linux). */
  async function openOne(index: number): Promise<void> {
    const localAddress = `127.0.${1 + (index % 100)}.1`;
    const socket = connect({ host: hostname, port: Number(port), localAddress });
    sockets.push(socket.on('error', () => undefined));
    await once(socket, 'connect');
    socket.write('GET /health HTTP/1.1\r\nHost: platform\r\n\r\n');
    await once(socket, 'data');
  }
  for (let opened = 0; opened < idle; opened += 100)
    await Promise.all(Array.from({ length: 100 }, (_, index) => openOne(opened + index)));
  const all = await resourcesOf('gateway');
  const left = () => sockets.filter(({ destroyed }) => !destroyed).length;
  const stillOpen = left();
  await until('all are closed by the gateway', () => left() === 0, 120_000);
  const meanwhile = await reads.stop();
  await until('they are gone', async () => (await resourcesOf('gateway')).sockets <= before.sockets + 5);
  const bytesEach = Math.round((all.rss - before.rss) / (all.sockets - before.sockets));
  const after = await resourcesOf('gateway');
  result['idle'] = { opened: idle, stillOpen, bytesEach, before, open: all, after, reads: meanwhile };
  expect(meanwhile).toMatchObject({ refused: 0, failures: [] });
  expect(meanwhile.p95).toBeLessThan(targetMs);
  expect(stillOpen).toBe(idle);
  expect(bytesEach).toBeGreaterThan(0);
  expect(bytesEach).toBeLessThan(50_000);
}, 600_000);

test(`${many} slow clients: others get replies in time, and every slow connection is closed`, async () => {
  const people = await Promise.all(Array.from({ length: 8 }, () => newUser()));
  const tokens = people.map(({ token }) => token);
  const files = await largeFiles(tokens.slice(0, 3));
  const calmReads = await startReads();
  await sleep(5_000);
  const calm = await calmReads.stop();
  const resourcesOfBoth = async () => ({
    gateway: await resourcesOf('gateway'),
    'media-upload': await resourcesOf('media-upload'),
  });
  const before = await resourcesOfBoth();

  const reads = await startReads();
  const share = (part: number) => Math.round(many * part);
  const slow = await startSlowClients(stack().gateway, [
    ...slowKinds(share, tokens),
    // Twenty a second, so that the uploads' slow readers are no load by themselves.
    nonReadingClient(share(0.09), 1, files),
  ]);
  const stillOpen = () => slow.clients.filter(({ closedAt }) => closedAt === undefined).length;
  let least = Infinity;
  const count = setInterval(() => (least = Math.min(least, stillOpen())), 500);
  const heldReads = await startReads();
  await sleep(heldMs);
  clearInterval(count);
  const held = await heldReads.stop();
  slow.stopReconnecting();
  const readers = slow.clients.filter(({ kind }) => kind === 'reader');
  const others = slow.clients.filter(({ kind }) => kind !== 'reader');
  try {
    // A client that reads nothing notices the close only when it reads again; data that is missing then was never sent.
    await sleep(closedWithinMs['reader']! + slackMs);
    for (const { socket } of readers) socket.on('data', () => undefined).resume();
    await until(
      'the readers see that they were left',
      () => readers.every(({ closedAt }) => closedAt),
      30_000,
    );
    expect(readers.filter(({ socket }) => socket.bytesRead >= large.length)).toEqual([]);
    await until('all are closed', () => others.every(({ closedAt }) => closedAt), 240_000);
  } finally {
    slow.stop();
  }
  const meanwhile = await reads.stop();
  const clients = summary(slow.clients);
  Object.assign(result, {
    slow: { sockets: least, heldMs, clients, reads: { calm, held, meanwhile }, before },
  });
  await until('the connections are gone', async () => {
    const after = await resourcesOfBoth();
    Object.assign(result['slow'] as object, { after });
    // Pooled connections may come and go.
    const isBack = (name: keyof typeof after) => after[name].sockets <= before[name].sockets + 5;
    return isBack('gateway') && isBack('media-upload');
  });
  expect(meanwhile).toMatchObject({ refused: 0, failures: [] });
  expect(meanwhile.p95).toBeLessThan(targetMs);
  expect(least).toBeGreaterThanOrEqual(many);
  expect(held.p95).toBeLessThan(targetMs);
  for (const client of others) {
    const kind = outcome(client);
    const inTime = client.closedAt! - client.openedAt <= closedWithinMs[kind]! + slackMs;
    expect({ kind, inTime }).toEqual({ kind, inTime: true });
  }
  // Clients without a free slot cost nothing: of each kind, some must have got a slot.
  const inTheirPlace = (kind: string, status: number) =>
    slow.clients.filter((client) => client.kind === kind && client.status === status).length;
  expect(inTheirPlace('upload', 408)).toBeGreaterThanOrEqual(share(0.02));
  expect(inTheirPlace('reader', 200)).toBeGreaterThanOrEqual(share(0.04));
  // The slots of the slow clients are free again.
  await uploaded(people[7]!.token, newPdf());
}, 900_000);

test('180 clients download 9 MB each: others get replies or Retry-After, and the platform recovers soon', async () => {
  const people = await Promise.all(Array.from({ length: 3 }, () => newUser()));
  const files = await largeFiles(people.map(({ token }) => token));
  const reads = await startReads();
  await reads.untilAnswered();
  const burst = await startSlowClients(stack().gateway, [nonReadingClient(180, 20, files)]);
  burst.stopReconnecting();
  const begun = performance.now();
  await reads.untilAnswered();
  const wellAfterMs = Math.round(performance.now() - begun);
  for (const { socket } of burst.clients) socket.resume();
  await until('all know what they are answered', () => burst.clients.every(({ status }) => status));
  burst.stop();
  const others = await reads.stop();
  const { statuses } = summary(burst.clients)['reader']!;
  Object.assign(result, { burst: { statuses, wellAfterMs, reads: others } });
  expect(others.failures).toEqual([]);
  expect(Object.keys(statuses).filter((status) => !['200', '503'].includes(status))).toEqual([]);
  expect(wellAfterMs).toBeLessThan(10_000);
}, 600_000);
