// Sends the load, in a process of its own. `perSecond` requests are due each second, evenly, and each is sent when it is
// due, on a connection that is free: what waits for the gateway is no reason to send less.
import { setTimeout as sleep } from 'node:timers/promises';
import { open, type Connection, type Reply } from './connection.ts';
import { patienceMs, targetMs, type Job, type Quantiles, type Seen } from './job.ts';

/** The requests' tokens, one of each person. */
let tokens: string[] = [];

function quantiles(times: number[]): Quantiles | undefined {
  if (times.length === 0) return undefined;
  const sorted = Float64Array.from(times).toSorted();
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

async function run({ origin, path, seconds, perSecond, connections }: Job): Promise<Seen> {
  const url = new URL(origin);
  const requests = tokens.map((token) =>
    Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${token}\r\n\r\n`),
  );
  const statuses: Record<string, number> = {};
  const goodEachSecond = Array.from({ length: seconds }, () => 0);
  const [good, refused, lateness]: number[][] = [[], [], []];
  const free: Connection[] = [];
  /** Those with a request under way, in the order of sending, and when it was due. */
  const waiting = new Map<Connection, number>();
  let start = 0;
  let [due, unsent, broken, gaveUp, withoutRetryAfter, opened] = [0, 0, 0, 0, 0, 0];

  function note({ status, retryAfter }: Reply, dueAt: number, now: number): void {
    if (status === 0) return void (broken += 1);
    statuses[status] = (statuses[status] ?? 0) + 1;
    if (status === 200) {
      good!.push(now - dueAt);
      const second = Math.floor((now - start) / 1_000);
      if (second < seconds) goodEachSecond[second]! += 1;
    } else {
      refused!.push(now - dueAt);
      if (!retryAfter) withoutRetryAfter += 1;
    }
  }

  function onReply(reply: Reply, connection: Connection): void {
    const dueAt = waiting.get(connection);
    waiting.delete(connection);
    const now = performance.now();
    if (dueAt !== undefined) note(reply, dueAt, now);
    if (reply.status === 0) {
      opened -= 1;
      const index = free.indexOf(connection);
      if (index !== -1) free.splice(index, 1);
      return;
    }
    if (perSecond === 0 && now < start + seconds * 1_000) return send(connection, now);
    free.push(connection);
  }

  function send(connection: Connection, dueAt: number): void {
    waiting.set(connection, dueAt);
    connection.send();
  }

  let turn = 0;
  const openOne = () => open(url, requests[turn++ % requests.length]!, onReply);
  // People have a connection each before it begins; Node accepts one in a turn of its event loop.
  const before = perSecond > 0 ? Math.min(tokens.length, connections) : 0;
  for (; opened < before; opened += 1) free.push(openOne());
  await sleep(500);
  start = performance.now();
  const end = start + seconds * 1_000;

  function sendOne(dueAt: number): void {
    due += 1;
    // The one that was free for the longest time: so all have their turn.
    const connection = free.shift() ?? (opened < connections ? (opened++, openOne()) : undefined);
    if (!connection) return void (unsent += 1);
    send(connection, dueAt);
  }

  function giveUp(now: number): void {
    for (const [connection, dueAt] of waiting) {
      if (now - dueAt < patienceMs) return;
      waiting.delete(connection);
      connection.close();
      opened -= 1;
      gaveUp += 1;
    }
  }

  if (perSecond === 0) for (let index = 0; index < connections; index += 1) sendOne(start);
  for (let now = start; now < end; now = performance.now()) {
    for (; due < ((now - start) * perSecond) / 1_000;) {
      const dueAt = start + (due * 1_000) / perSecond;
      lateness!.push(now - dueAt);
      sendOne(dueAt);
    }
    giveUp(now);
    await sleep(1);
  }
  const endedAt = Date.now();
  const goodThen = statuses['200'] ?? 0;
  for (const until = end + patienceMs; waiting.size > 0 && performance.now() < until;) {
    giveUp(performance.now());
    await sleep(10);
  }
  for (const connection of [...free, ...waiting.keys()]) connection.close();
  const inTime = good!.filter((ms) => ms <= targetMs).length;
  const answered = good!.length;
  const goodput = goodThen / seconds;
  return {
    due: perSecond === 0 ? answered : due,
    statuses,
    goodput,
    goodputInTime: answered === 0 ? 0 : (goodput * inTime) / answered,
    goodEachSecond,
    good: quantiles(good!),
    refused: quantiles(refused!),
    withoutRetryAfter,
    gaveUp,
    unsent,
    broken,
    endedAt,
    late: quantiles(lateness!)?.p99 ?? 0,
  };
}

process.on('message', (message: Job | string[]) => {
  if (Array.isArray(message)) tokens = message;
  else void run(message).then((seen) => process.send!(seen));
});
// The bench is gone.
process.once('disconnect', () => process.exit());
