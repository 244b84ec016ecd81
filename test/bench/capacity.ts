// `npm run bench -- capacity`: the CPU that each process takes for a hit, a miss, a clear and an event, and the memory of
// an idle connection: what docs/scaling.md counts with. CPU time, not seconds: other work on the machine does not count.
import { readFileSync } from 'node:fs';
import { Agent as HttpAgent, get } from 'node:http';
import { Agent, request } from 'undici';
import { clearModel } from '@content-platform/contract';
import { tokenOf } from '../support/accounts.ts';
import { announce, closeEvents } from '../support/events.ts';
import { closeRecords, database, freshId } from '../support/records.ts';
import { pidOf, stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { cpuOf } from './cpu.ts';

const processes = ['gateway', 'content-cache', 'redis', 'postgres', 'kafka'];
const concurrency = 16;
const warmUp = 20_000;
const connections = 2_000;
const bodyBytes = 2_000;

const rssOf = (name: string): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pidOf(name)}/status`, 'utf8'))![1]) * 1024;

const { gateway } = stack();
const dispatcher = new Agent({ connections: concurrency, pipelining: 1 });
const bearer = async (account: 'user' | 'machine') => ({
  authorization: `Bearer ${await tokenOf(gateway, account)}`,
});
const reader = await bearer('user');
const editor = { ...(await bearer('machine')), 'content-type': 'application/json' };

async function send(path: string, options: object): Promise<void> {
  const reply = await request(gateway + path, { dispatcher, ...options });
  const text = await reply.body.text();
  if (reply.statusCode !== 200) throw new Error(`${path}: ${reply.statusCode} ${text}`);
}

const read = (id: number) => send(`/api/content/pathway/${id}`, { headers: reader });
const clear = (id: number) =>
  send(clearModel.path, { method: 'POST', headers: editor, body: JSON.stringify({ model: 'pathway', id }) });

/** Does `work` with 0, 1, 2 … `count`, so many at a time. */
async function each(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const one = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: concurrency }, one));
}

/** Records of 2 KB that nobody has read. */
async function makeRecords(count: number): Promise<number[]> {
  const first = freshId();
  await database().query(
    `INSERT INTO content.record (model, id, title, body)
     SELECT 'pathway', $1::bigint + n, 'Measured', $2 FROM generate_series(0, $3 - 1) AS n`,
    [first, JSON.stringify({ text: 'x'.repeat(bodyBytes) }), count],
  );
  return Array.from({ length: count }, (_, index) => first + index);
}

/** Every event so far is carried out. */
async function untilConsumed(): Promise<void> {
  await until('the events are carried out', async () => {
    const text = await (await fetch(`${stack().services['content-cache']!.internal}/metrics`)).text();
    return /^invalidation_queue_length\S* 0$/m.test(text);
  });
}

async function measure(what: string, count: number, work: () => Promise<void>): Promise<void> {
  const before = processes.map((name) => cpuOf(pidOf(name)));
  const start = performance.now();
  await work();
  const perSecond = (count / (performance.now() - start)) * 1_000;
  const us = processes.map((name, index) => (cpuOf(pidOf(name)) - before[index]!) / count);
  const ours = us[0]! + us[1]!;
  const shown = processes.map((name, index) => `${name} ${us[index]!.toFixed(0)}`).join('  ');
  console.log(
    `  ${what.padEnd(6)} ${shown}  ours together ${ours.toFixed(0)}: ${(1e6 / ours).toFixed(0)} a second a core (${perSecond.toFixed(0)} a second here)`,
  );
}

const records = await makeRecords(50);
await each(warmUp, (index) => read(records[index % records.length]!));
console.log('CPU for one, in µs, through one gateway and one content-cache, on records of 2 KB');
await measure('hit', 10_000, () => each(10_000, (index) => read(records[index % records.length]!)));
const unread = await makeRecords(4_000);
await each(500, (index) => read(unread[index]!));
await measure('miss', 3_000, () => each(3_000, (index) => read(unread[1_000 + index]!)));
await each(500, (index) => clear(unread[index]!));
await measure('clear', 3_000, () => each(3_000, (index) => clear(unread[1_000 + index]!)));
const event = (id: number) => announce(JSON.stringify({ model: 'pathway', id }), `pathway:${id}`);
await each(500, (index) => event(unread[index]!));
await untilConsumed();
await measure('event', 3_000, async () => {
  await each(3_000, (index) => event(unread[1_000 + index]!));
  await untilConsumed();
});

const agent = new HttpAgent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: connections });
const before = rssOf('gateway');
await Promise.all(
  Array.from(
    { length: connections },
    () =>
      new Promise<void>((resolve, reject) => {
        get(`${gateway}/api/me`, { agent, headers: reader }, (response) => {
          response.resume().once('end', resolve);
        }).once('error', reject);
      }),
  ),
);
console.log(
  `memory of an idle connection to the gateway, in KB: ${((rssOf('gateway') - before) / connections / 1024).toFixed(1)} (${connections} of them)`,
);
agent.destroy();
await Promise.all([dispatcher.close(), closeEvents(), closeRecords()]);
