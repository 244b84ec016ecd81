// `npm run bench -- gateway`: compares CPU per request, throughput and latency of the gateway with alternatives that have
// the same duties, and with bare proxies. All run at the same time and are measured in alternating rounds, after a warm-up.
// A round sends a fixed number of requests of 1 KB over 64 persistent connections. Logs go to /dev/null.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeRow } from '../../support/ports.ts';
import { startRedis } from '../../support/redis-server.ts';
import { until } from '../../support/wait.ts';
import { cpuOf, redisVersion } from '../figures.ts';
import { inRotatingOrder } from '../rotating-order.ts';
import { conclude } from '../verdict.ts';
import { startAuth } from './auth.ts';
import { candidates, type Candidate } from './candidates.ts';
import { judge, type Result, type Round } from './goals.ts';
import { installPeers, versionsOf } from './install.ts';
import { connections, type Job, type Seen } from './job.ts';
import { nginx, nginxVersion } from './nginx.ts';
import { startLoad, stopAll } from './processes.ts';

const rounds = 5;
const warmUp = 10_000;
const requests = 5_000;
const path = '/api/content/pathway/1';

await installPeers();
const { url: upstream, headers, publicKeyPem } = await startAuth();
const folder = mkdtempSync(join(tmpdir(), 'bench-gateway-'));
const redis = await startRedis();
const load = startLoad<Job, Seen>('test/bench/gateway/load.ts');

const statusOf = async (url: string, init: RequestInit = {}): Promise<number> => {
  const reply = await fetch(url, init);
  await reply.arrayBuffer();
  return reply.status;
};

/** Starts a candidate and checks that it fulfils its duties. */
async function bringUp({ name, does, hasDuties, start }: Candidate) {
  // The platform's gateway needs a second port above it for its internal listener.
  const port = await freeRow(1);
  const children = await start(port, { upstream, redis: redis.url, publicKeyPem, folder });
  const origin = `http://127.0.0.1:${port}`;
  await until(`${name} answers`, async () => (await statusOf(origin + path, { headers })) === 200);
  if (hasDuties) {
    const seen = [await statusOf(origin + path), await statusOf(`${origin}/api/other/1`, { headers })];
    if (String(seen) !== '401,404')
      throw new Error(`${name} does not refuse requests as required: ${seen.join(', ')}`);
  }
  const result: Result = { name, does, hasDuties, rounds: [] };
  return { origin, pids: children.map(({ pid }) => pid!), result };
}
type Running = Awaited<ReturnType<typeof bringUp>>;

async function measure({ origin, pids }: Running): Promise<Round> {
  const cpu = () => pids.reduce((sum, pid) => sum + cpuOf(pid), 0);
  const before = cpu();
  const seen = await load.send({ origin, paths: [path], headers, requests });
  return { ...seen, cpu: (cpu() - before) / requests };
}

/** Warms up the JIT compiler until two consecutive rounds take nearly the same CPU, at most ten rounds. */
async function warm(one: Running): Promise<void> {
  await load.send({ origin: one.origin, paths: [path], headers, requests: warmUp });
  let last = Infinity;
  for (let round = 0; round < 10; round += 1) {
    const { cpu } = await measure(one);
    if (Math.abs(cpu - last) < last * 0.05) return;
    last = cpu;
  }
}

try {
  const running: Running[] = [];
  for (const candidate of candidates) running.push(await bringUp(candidate));
  for (const one of running) await warm(one);
  console.log(`${rounds} rounds of ${requests} requests of 1 KB, ${connections} connections`);
  await inRotatingOrder(running, rounds, async (one) => void one.result.rounds.push(await measure(one)));
  const results = running.map(({ result }) => result);
  conclude(
    'gateway',
    judge(results),
    { connections, requests, leftOut: nginx ? [] : ['nginx'], results },
    {
      redis: await redisVersion(redis.admin),
      ...(nginx ? { nginx: await nginxVersion() } : {}),
      ...versionsOf('fast-gateway', 'fast-jwt', 'fastify', '@fastify/http-proxy', '@fastify/jwt'),
      ...versionsOf('express', 'http-proxy-middleware', 'jsonwebtoken', 'undici'),
    },
  );
} finally {
  await stopAll();
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
}
