// Sends the load from its own process. `perSecond` requests are due each second at equal intervals. Each is sent on a free
// connection when it is due, even if earlier requests still wait for the gateway. The requests use the tokens in turn.
import { setTimeout as sleep } from 'node:timers/promises';
import { open, type Connection, type Reply } from './connection.ts';
import { percentile } from '../percentiles.ts';
import { patienceMs, targetMs, type Job, type Quantiles, type Seen } from './job.ts';

let tokens: string[] = [];
let turn = 0;

/** Time for accepting the connections. */
const connectMs = 2_000;

function quantiles(times: number[]): Quantiles | undefined {
  if (times.length === 0) return undefined;
  return { p50: percentile(times, 0.5), p95: percentile(times, 0.95), p99: percentile(times, 0.99) };
}

/** Counts the outcomes of requests from `start` (performance.now()). */
function createTally(start: number, seconds: number) {
  const statuses: Record<string, number> = {};
  let goodInTheRun = 0;
  let inTimeInTheRun = 0;
  const good: number[] = [];
  const firstRefused: number[] = [];
  const counts = { due: 0, gaveUp: 0, unsent: 0, broken: 0, withoutRetryAfter: 0 };

  return {
    counts,
    /** @param wasRefused whether an earlier request on the connection was refused */
    note({ status, retryAfter }: Reply, dueAt: number, now: number, wasRefused: boolean): void {
      if (status === 0) return void (counts.broken += 1);
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status !== 200 && !wasRefused) firstRefused.push(now - dueAt);
      if (status !== 200 && !retryAfter) counts.withoutRetryAfter += 1;
      if (status !== 200) return;
      good.push(now - dueAt);
      if (now >= start + seconds * 1_000) return;
      goodInTheRun += 1;
      if (now - dueAt <= targetMs) inTimeInTheRun += 1;
    },
    seen(endedAt: number): Seen {
      return {
        ...counts,
        statuses,
        goodput: goodInTheRun / seconds,
        goodputInTime: inTimeInTheRun / seconds,
        good: quantiles(good),
        firstRefused: quantiles(firstRefused),
        endedAt,
      };
    },
  };
}

async function run({ origins, paths, seconds, perSecond, preopened, connections }: Job): Promise<Seen> {
  const urls = origins.map((origin) => new URL(origin));
  const headers = ` HTTP/1.1\r\nHost: ${urls[0]!.host}\r\nAuthorization: Bearer `;
  const free: Connection[] = [];
  /** Connections with a request in progress, in sending order, and the time at which the request was due. */
  const waiting = new Map<Connection, number>();
  /** Connections that got a refusal. */
  const refused = new Set<Connection>();
  let opened = 0;

  function openOne(): Connection {
    return open(urls[opened++ % urls.length]!, onReply);
  }
  while (opened < preopened) free.push(openOne());
  await sleep(connectMs);
  const start = performance.now();
  const end = start + seconds * 1_000;
  const tally = createTally(start, seconds);

  function onReply(reply: Reply, connection: Connection): void {
    const now = performance.now();
    const dueAt = waiting.get(connection);
    waiting.delete(connection);
    if (dueAt !== undefined) tally.note(reply, dueAt, now, refused.has(connection));
    if (reply.status === 503) refused.add(connection);
    if (reply.status === 0) return forget(connection);
    if (perSecond > 0 || now >= end) return void free.push(connection);
    tally.counts.due += 1;
    send(connection, now);
  }

  function forget(connection: Connection): void {
    opened -= 1;
    const index = free.indexOf(connection);
    if (index !== -1) free.splice(index, 1);
  }

  function send(connection: Connection, dueAt: number): void {
    waiting.set(connection, dueAt);
    const [path, token] = [paths[turn % paths.length]!, tokens[turn % tokens.length]!];
    turn += 1;
    connection.send(Buffer.from(`GET ${path}${headers}${token}\r\n\r\n`, 'latin1'));
  }

  function sendOne(dueAt: number): void {
    tally.counts.due += 1;
    // The connection that was free for the longest time, so that all are used.
    const connection = free.shift() ?? (opened < connections ? openOne() : undefined);
    if (connection) send(connection, dueAt);
    else tally.counts.unsent += 1;
  }

  function closeTimedOut(now: number): void {
    for (const [connection, dueAt] of waiting) {
      if (now - dueAt < patienceMs) return;
      waiting.delete(connection);
      connection.close();
      opened -= 1;
      tally.counts.gaveUp += 1;
    }
  }

  /** Returns the number of requests due by `now`, if `perSecond` is not 0. */
  const dueBy = (now: number) => ((now - start) * perSecond) / 1_000;

  if (perSecond === 0) for (let index = 0; index < connections; index += 1) sendOne(start);
  for (let now = start; now < end; now = performance.now()) {
    while (tally.counts.due < dueBy(now)) sendOne(start + (tally.counts.due * 1_000) / perSecond);
    closeTimedOut(now);
    await sleep(1);
  }
  const endedAt = Date.now();
  while (waiting.size > 0) {
    closeTimedOut(performance.now());
    await sleep(10);
  }
  for (const connection of free) connection.close();
  return tally.seen(endedAt);
}

process.on('message', (message: Job | string[]) => {
  if (Array.isArray(message)) tokens = message;
  else void run(message).then((seen) => process.send!(seen));
});
// The benchmark process has ended.
process.once('disconnect', () => process.exit());
