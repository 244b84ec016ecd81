// `npm run bench -- tracing`: what traces cost a read through the gateway. Pairs of gateway and content-cache, two that
// are traced and two that are not, on the stores of the stack that is running, are asked in turns; what counts is the CPU
// that both processes of a pair take for a request. Exits with 1 when traced pairs take more than 1.1 times as much.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { environmentWith } from '../../deploy/local/config.ts';
import { freeRow } from '../../deploy/local/ports.ts';
import { portsOf, serviceSpec } from '../../deploy/local/service-process.ts';
import { serviceOf, services } from '@content-platform/contract';
import { tokenOf } from '../support/accounts.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { median } from './percentiles.ts';

const limit = 1.1;
/** Short, and many: whatever else the machine does meets both pairs, and the median leaves it out. */
const rounds = 60;
const requests = 300;
// Until then the compiler is at work, and has more to do where there is more code.
const warmUp = 20_000;
const connections = 8;
const records = 50;
const pair = [serviceOf('gateway'), serviceOf('content-cache')];

interface Pair {
  gateway: string;
  internal: string[];
  children: ChildProcess[];
}

/** A gateway and a content-cache on ports of their own; the other services are the stack's. */
async function startPair(added: Record<string, string>): Promise<Pair> {
  const port = await freeRow(services.length);
  const { gateway, postgres, logs, redis, services: running } = stack();
  const stores = { postgres, logs, redis, kafka: '', media: '', secretsFile: '' };
  const auth = running['auth']!;
  const common = {
    PUBLIC_URL: gateway,
    AUTH_URL: auth.public,
    AUTH_INTERNAL_URL: auth.internal,
    // The limits are counted as usual, and never reached.
    RATE_LIMIT_SCALE: '1000',
    ...added,
  };
  const children = pair.map((service) => {
    const { command, args, cwd, env } = serviceSpec(service, port, stores);
    const own = environmentWith({ ...env?.(), ...common });
    return spawn(command, args, { cwd, env: own, stdio: ['ignore', 'ignore', 'inherit'] });
  });
  const internal = pair.map((service) => `http://127.0.0.1:${portsOf(service, port)[1]}`);
  await until('the pair is ready', async () => {
    const ready = await Promise.all(internal.map(async (url) => (await fetch(`${url}/health/ready`)).ok));
    return ready.every(Boolean);
  });
  return { gateway: `http://127.0.0.1:${port}`, internal, children };
}

/** CPU that each process of the pair has taken so far, all of its threads, in ms (Linux: proc(5), schedstat). */
function cpu({ children }: Pair): number[] {
  return children.map(({ pid }) => {
    const folder = `/proc/${pid}/task`;
    const threads = readdirSync(folder).map((thread) =>
      readFileSync(`${folder}/${thread}/schedstat`, 'utf8'),
    );
    return sum(threads.map((text) => Number(text.split(' ')[0]) / 1_000_000));
  });
}

const dispatcher = new Agent({ connections, pipelining: 1 });

async function read(gateway: string, headers: Record<string, string>, count: number): Promise<void> {
  let left = count;
  const one = async () => {
    while (left-- > 0) {
      const path = `/api/content/webform/${1 + (left % records)}`;
      const reply = await request(gateway + path, { dispatcher, headers });
      const text = await reply.body.text();
      if (reply.statusCode !== 200) throw new Error(`${path}: ${reply.statusCode} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
}

/** CPU of each process for one request, in ms. */
async function measure(pair: Pair, headers: Record<string, string>): Promise<number[]> {
  const before = cpu(pair);
  await read(pair.gateway, headers, requests);
  return cpu(pair).map((ms, index) => (ms - before[index]!) / requests);
}

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);

let received = 0;
const collector = createServer((incoming, response) => {
  incoming.on('data', (chunk: Buffer) => (received += chunk.length));
  incoming.on('end', () => response.end());
});
await once(collector.listen(0, '127.0.0.1'), 'listening');
const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
const headers = { authorization: `Bearer ${await tokenOf(stack().gateway, 'user')}` };
// Two of each: processes that do the same differ by some percent, for as long as they live.
const kinds = ['off', 'on', 'off', 'on'] as const;
const pairs: Pair[] = [];
for (const kind of kinds) {
  pairs.push(await startPair({ OTEL_EXPORTER_OTLP_ENDPOINT: kind === 'on' ? endpoint : '' }));
}
try {
  for (const pair of pairs) await read(pair.gateway, headers, warmUp);
  const seen: number[][][] = pairs.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    // Whoever comes later finds a machine that is warmer, or busier: each is first in its turn.
    for (let turn = 0; turn < pairs.length; turn += 1) {
      const which = (round + turn) % pairs.length;
      seen[which]!.push(await measure(pairs[which]!, headers));
    }
  }
  console.log(`CPU of a read from the cache, in ms, median of ${rounds} rounds of ${requests}`);
  for (const [which, values] of seen.entries()) {
    const each = pair.map(({ name }, index) => {
      return `${name} ${median(values.map((value) => value[index]!)).toFixed(3)}`;
    });
    const both = median(values.map(sum)).toFixed(3);
    console.log(`  traces ${kinds[which]!.padEnd(4)} ${each.join('   ')}   both ${both}`);
  }
  const all = (kind: 'off' | 'on') =>
    seen.flatMap((values, which) => (kinds[which] === kind ? values.map(sum) : []));
  const ratio = median(all('on')) / median(all('off'));
  console.log(`  on / off ${ratio.toFixed(3)}, limit ${limit}`);
  console.log(`  ${(received / 1_000_000).toFixed(1)} MB of traces were sent`);
  if (ratio > limit) process.exitCode = 1;
} finally {
  for (const child of pairs.flatMap(({ children }) => children)) child.kill();
  collector.close();
  collector.closeAllConnections();
  await dispatcher.close();
}
