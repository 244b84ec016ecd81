// `npm run bench -- gateway`: the CPU that a request takes in the gateway, throughput and latency, beside what one would
// take instead: with the same duties, and bare. All of them are up at once and take turns; each round is as many requests
// of 1 KB over 64 kept connections. What is written goes to /dev/null. Not before all have been warmed up.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeRow } from '../../../deploy/local/ports.ts';
import { startRedis } from '../../support/redis-server.ts';
import { writeResult } from '../../support/results.ts';
import { until } from '../../support/wait.ts';
import { cpuOf } from '../cpu.ts';
import { issuer } from '../own-services.ts';
import { redisVersion } from '../redis-figures.ts';
import { conclude } from '../verdict.ts';
import { candidates, portFor, type Candidate } from './candidates.ts';
import { spread, tableOf, type Result, type Round } from './figures.ts';
import { judge } from './goals.ts';
import { installPeers, versionsOf } from './install.ts';
import { connections } from './job.ts';
import { nginx, nginxVersion } from './nginx.ts';
import { startHelper, startNode, stopAll } from './processes.ts';
import { send } from './send.ts';
import { createToken } from './token.ts';

const rounds = 5;
const warmUp = 10_000;
const requests = 5_000;
const path = '/api/content/pathway/1';

await installPeers();
const { token, pem, keySet } = createToken(issuer);
const headers = { authorization: `Bearer ${token}` };
const folder = mkdtempSync(join(tmpdir(), 'bench-gateway-'));
const redis = await startRedis();
const upstreamPort = await freeRow(1);
const upstream = `http://127.0.0.1:${upstreamPort}`;
startNode(
  'test/bench/gateway/upstream.ts',
  { PORT: String(upstreamPort), KEY_SET: keySet },
  process.execArgv,
);
const load = startHelper('test/bench/gateway/load.ts');

type Running = Candidate & { origin: string; pids: number[] };

const statusOf = async (url: string, init: RequestInit = {}): Promise<number> => {
  const reply = await fetch(url, init);
  await reply.arrayBuffer();
  return reply.status;
};

/** Starts it, and sees that it does what it is measured for. */
async function bringUp(candidate: Candidate): Promise<Running> {
  const port = await portFor();
  const children = await candidate.start(port, { upstream, redis: redis.url, publicKeyPem: pem, folder });
  const origin = `http://127.0.0.1:${port}`;
  await until(`${candidate.name} answers`, async () => (await statusOf(origin + path, { headers })) === 200);
  if (candidate.hasDuties) {
    const seen = [await statusOf(origin + path), await statusOf(`${origin}/api/other/1`, { headers })];
    if (String(seen) !== '401,404') throw new Error(`${candidate.name} lets through: ${seen.join(', ')}`);
  }
  return { ...candidate, origin, pids: children.map(({ pid }) => pid!) };
}

async function measure({ origin, pids }: Running): Promise<Round> {
  const cpu = () => pids.reduce((sum, pid) => sum + cpuOf(pid), 0);
  const before = cpu();
  const seen = await send(load, { origin, paths: [path], headers, requests });
  return { ...seen, cpu: (cpu() - before) / requests };
}

/** Its code is compiled as it is used: until two rounds in a row took nearly the same, but ten at most. */
async function warm(one: Running): Promise<void> {
  await send(load, { origin: one.origin, paths: [path], headers, requests: warmUp });
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
  const results: Result[] = running.map(({ name, does, hasDuties }) => ({
    name,
    does,
    hasDuties,
    rounds: [],
  }));
  for (const one of running) await warm(one);
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < running.length; turn += 1) {
      // Nobody always follows the same one.
      const index = (turn + round) % running.length;
      results[index]!.rounds.push(await measure(running[index]!));
    }
  }
  console.log(
    `CPU for one request, in µs: ${rounds} rounds of ${requests} requests of 1 KB, ${connections} connections`,
  );
  for (const hasDuties of [true, false]) {
    const some = results.filter((result) => result.hasDuties === hasDuties);
    console.log(`\n${hasDuties ? 'Same duties' : 'Bare'}\n${tableOf(some, results[0]!)}`);
    for (const { name, does } of hasDuties ? some : []) console.log(`  ${name}: ${does}`);
  }
  if (!nginx) console.log('\nnginx was left out: it is not on the PATH.');
  console.log('');
  conclude(judge(results));
  const uneven = results.filter((result) => spread(result) > 0.15).map(({ name }) => name);
  if (uneven.length > 0)
    console.log(`The machine was not calm: rounds differ by more than 15 % (${uneven.join(', ')}).`);
  writeResult(
    'bench',
    'gateway',
    { isCalm: uneven.length === 0, connections, requests, leftOut: nginx ? [] : ['nginx'], results },
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
