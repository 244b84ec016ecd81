// Sends the load, in a process of its own. `perSecond` requests are due each second, evenly, and each is sent when it is
// due, on a connection that is free: what waits for the gateway is no reason to send less. Each has the next one's token.
import { setTimeout as sleep } from 'node:timers/promises';
import { open, type Connection, type Reply } from './connection.ts';
import { patienceMs, type Job, type Seen } from './job.ts';
import { createTally } from './tally.ts';

/** The requests' tokens, one of each person. */
let tokens: string[] = [];
/** Whose turn it is. */
let turn = 0;

/** So long connections have to be accepted: Node accepts one in a turn of its event loop. */
const connectMs = 500;

async function run({ origin, path, seconds, perSecond, kept, connections }: Job): Promise<Seen> {
  const url = new URL(origin);
  const begin = `GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer `;
  const free: Connection[] = [];
  /** Those with a request under way, in the order of sending, and when it was due. */
  const waiting = new Map<Connection, number>();
  let opened = 0;

  function openOne(): Connection {
    opened += 1;
    return open(url, onReply);
  }
  while (opened < kept) free.push(openOne());
  await sleep(connectMs);
  const start = performance.now();
  const end = start + seconds * 1_000;
  const tally = createTally(start, seconds);

  function onReply(reply: Reply, connection: Connection): void {
    const now = performance.now();
    const dueAt = waiting.get(connection);
    waiting.delete(connection);
    if (dueAt !== undefined) tally.note(reply, dueAt, now);
    if (reply.status === 0) return leave(connection);
    if (perSecond > 0 || now >= end) return void free.push(connection);
    tally.counts.due += 1;
    send(connection, now);
  }

  function leave(connection: Connection): void {
    opened -= 1;
    const index = free.indexOf(connection);
    if (index !== -1) free.splice(index, 1);
  }

  function send(connection: Connection, dueAt: number): void {
    waiting.set(connection, dueAt);
    connection.send(Buffer.from(`${begin}${tokens[turn++ % tokens.length]}\r\n\r\n`, 'latin1'));
  }

  function sendOne(dueAt: number): void {
    tally.counts.due += 1;
    // The one that was free for the longest time: so all have their turn.
    const connection = free.shift() ?? (opened < connections ? openOne() : undefined);
    if (connection) send(connection, dueAt);
    else tally.counts.unsent += 1;
  }

  function giveUp(now: number): void {
    for (const [connection, dueAt] of waiting) {
      if (now - dueAt < patienceMs) return;
      waiting.delete(connection);
      connection.close();
      opened -= 1;
      tally.counts.gaveUp += 1;
    }
  }

  /** How many are due, unless each is due when the one before is answered. */
  const dueBy = (now: number) => ((now - start) * perSecond) / 1_000;

  if (perSecond === 0) for (let index = 0; index < connections; index += 1) sendOne(start);
  for (let now = start; now < end; now = performance.now()) {
    while (tally.counts.due < dueBy(now)) {
      sendOne(start + (tally.counts.due * 1_000) / perSecond);
    }
    giveUp(now);
    await sleep(1);
  }
  const endedAt = Date.now();
  while (waiting.size > 0) {
    giveUp(performance.now());
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
