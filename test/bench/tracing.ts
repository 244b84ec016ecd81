// `npm run bench -- tracing`: what traces cost a read through the gateway. Pairs of gateway and content-cache, two that
// are traced and two that are not, on the stores of the stack that is running, are asked in turns; what counts is the CPU
// that both processes of a pair take for a request. Exits with 1 when traced pairs take more than 1.1 times as much.
import { startHttpServer } from '../support/http-server.ts';
import { startAuth } from './gateway/auth.ts';
import { stopAll } from './gateway/processes.ts';
import { inTurns } from './in-turns.ts';
import { median } from './percentiles.ts';
import { measure, startPeople, startStand, type Stand } from './stand.ts';

const limit = 1.1;
/** Short, and many: whatever else the machine does meets both kinds, and the median leaves it out. */
const rounds = 30;
const seconds = 1;
/** Until then the compiler is at work, and has more to do where there is more code. */
const warmUpSeconds = 15;
const connections = 8;

let received = 0;
const collector = await startHttpServer((incoming, response) => {
  incoming.on('data', (chunk: Buffer) => (received += chunk.length));
  incoming.on('end', () => response.end());
});
try {
  const auth = await startAuth();
  const load = startPeople();
  load.tell([auth.sign(7)]);
  // Two of each: processes that do the same differ by some percent, for as long as they live.
  const pairs: (Stand & { traces: 'off' | 'on'; seen: number[] })[] = [];
  for (const traces of ['off', 'on', 'off', 'on'] as const) {
    const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: traces === 'on' ? collector.origin : '' };
    pairs.push({ traces, ...(await startStand(auth.url, { settings })), seen: [] });
  }
  const path = '/api/content/pathway/1';
  const ask = ({ gateway, pids }: (typeof pairs)[number], forSeconds: number) =>
    measure(load, { origin: gateway, path, seconds: forSeconds, perSecond: 0, kept: 0, connections }, pids);
  for (const pair of pairs) await ask(pair, warmUpSeconds);
  await inTurns(pairs, rounds, async (pair) => {
    const { cpu } = await ask(pair, seconds);
    pair.seen.push(cpu['gateway']! + cpu['content-cache']!);
  });
  console.log(`CPU of a read from the cache in gateway and content-cache, median of ${rounds} rounds`);
  for (const { traces, seen } of pairs)
    console.log(`  traces ${traces.padEnd(4)} ${median(seen).toFixed(0)} µs`);
  const all = (kind: 'off' | 'on') => pairs.flatMap(({ traces, seen }) => (traces === kind ? seen : []));
  const ratio = median(all('on')) / median(all('off'));
  console.log(`  on / off ${ratio.toFixed(3)}, limit ${limit}`);
  console.log(`  ${(received / 1_000_000).toFixed(1)} MB of traces were sent`);
  if (ratio > limit) process.exitCode = 1;
} finally {
  await stopAll();
  collector.close();
}
