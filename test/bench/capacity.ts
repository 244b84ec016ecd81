// `npm run bench -- capacity`: measures the CPU time of each process for a hit, a miss, a clear and an event, which
// docs/operations/scaling.md uses. CPU time does not include other work on the machine.
import { Agent, request } from 'undici';
import { clearModel } from '@content-platform/contract';
import { tokenOf } from '../support/accounts.ts';
import { announce, closeEvents } from '../support/events.ts';
import { closeRecords, database, freshId } from '../support/records.ts';
import { scrape } from '../support/metrics.ts';
import { pidOf, stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { cpuWhile } from './test-system.ts';

const processes = ['gateway', 'content-cache', 'redis', 'postgres', 'kafka'];
const concurrency = 16;
const warmUp = 20_000;
const bodyBytes = 2_000;

const { gateway } = stack();
const pids = Object.fromEntries(processes.map((name) => [name, pidOf(name)]));
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
const event = (id: number) => announce(JSON.stringify({ model: 'pathway', id }), `pathway:${id}`);

/** Runs `work` with each id, 16 in parallel. */
async function each(ids: readonly number[], work: (id: number) => Promise<unknown>): Promise<void> {
  const left = ids.values();
  const one = async () => {
    for (const id of left) await work(id);
  };
  await Promise.all(Array.from({ length: concurrency }, one));
}

async function makeRecords(count: number): Promise<number[]> {
  const first = freshId();
  await database().query(
    `INSERT INTO content.record (model, id, title, body)
     SELECT 'pathway', $1::bigint + n, 'Measured', $2 FROM generate_series(0, $3 - 1) AS n`,
    [first, JSON.stringify({ text: 'x'.repeat(bodyBytes) }), count],
  );
  return Array.from({ length: count }, (_, index) => first + index);
}

async function untilConsumed(): Promise<void> {
  const sentAt = Date.now() / 1_000;
  await until('the events are processed', async () => {
    const metrics = await scrape('content-cache');
    // An older measurement of the queue lacks the last events.
    const isNew = metrics.get('invalidation_queue_measured_timestamp_seconds')! > sentAt;
    return isNew && metrics.get('invalidation_queue_length') === 0;
  });
}

async function measure(what: string, count: number, work: () => Promise<void>): Promise<void> {
  const { cpu } = await cpuWhile(pids, work, () => count);
  const ours = cpu['gateway']! + cpu['content-cache']!;
  const shown = processes.map((name) => `${name} ${cpu[name]!.toFixed(0)}`).join('  ');
  console.log(
    `  ${what.padEnd(6)} ${shown}  ours ${ours.toFixed(0)}: ${(1e6 / ours).toFixed(0)} a second a core`,
  );
}

const records = await makeRecords(50);
const inTurn = (count: number) => Array.from({ length: count }, (_, n) => records[n % records.length]!);
await each(inTurn(warmUp), read);
console.log('CPU for one, in µs, through one gateway and one content-cache, on records of 2 KB');
await measure('hit', 10_000, () => each(inTurn(10_000), read));
const [forWarmUp, measured] = [await makeRecords(500), await makeRecords(3_000)];
await each(forWarmUp, read);
await measure('miss', measured.length, () => each(measured, read));
await each(forWarmUp, clear);
await measure('clear', measured.length, () => each(measured, clear));
await each(forWarmUp, event);
await untilConsumed();
await measure('event', measured.length, async () => {
  await each(measured, event);
  await untilConsumed();
});
await Promise.all([dispatcher.close(), closeEvents(), closeRecords()]);
