// `npm run bench -- tracing`: measures what traces cost a read through the gateway. Two pairs of gateway and content-cache
// are traced and two are not, all on the stores of the running stack. Requests alternate between the pairs. The figure is
// the CPU of both processes of a pair per request. Exits with 1 if traced pairs use more than 1.1 times the CPU.
import { startHttpServer } from '../support/http-server.ts';
import { startAuth } from './gateway/auth.ts';
import { stopAll } from './gateway/processes.ts';
import { inRotatingOrder } from './rotating-order.ts';
import { median } from './percentiles.ts';
import { measure, startPeople, startTestSystem, type TestSystem } from './test-system.ts';

const limit = 1.1;
/** Many short rounds: other work on the machine affects both kinds, and the median removes outliers. */
const rounds = 30;
const seconds = 1;
/** Duration of the warm-up, in which the JIT compiler optimizes the code. */
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
  load.post([auth.sign(7)]);
  // Two pairs of each kind, because equal processes differ by some percent for their whole life.
  const pairs: (TestSystem & { traces: 'off' | 'on'; seen: number[] })[] = [];
  for (const traces of ['off', 'on', 'off', 'on'] as const) {
    const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: traces === 'on' ? collector.origin : '' };
    pairs.push({ traces, ...(await startTestSystem(auth.url, { settings })), seen: [] });
  }
  const path = '/api/content/pathway/1';
  const ask = ({ gateway, pids }: (typeof pairs)[number], forSeconds: number) =>
    measure(load, { origin: gateway, path, seconds: forSeconds, perSecond: 0, kept: 0, connections }, pids);
  for (const pair of pairs) await ask(pair, warmUpSeconds);
  await inRotatingOrder(pairs, rounds, async (pair) => {
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
