// Sends a fixed number of requests per message, to compare CPU per request; ../load/main.ts sends at a rate for a time.
// Runs in its own process. Each of 64 persistent connections sends its next request after the reply.
import { Pool } from 'undici';
import { percentile } from '../percentiles.ts';
import { connections, type Job, type Seen } from './job.ts';

const pools = new Map<string, Pool>();

function poolOf(origin: string): Pool {
  const known = pools.get(origin) ?? new Pool(origin, { connections, pipelining: 1 });
  pools.set(origin, known);
  return known;
}

async function run({ origin, paths, headers, requests }: Job): Promise<Seen> {
  const pool = poolOf(origin);
  const times: number[] = [];
  let left = requests;
  async function one(): Promise<void> {
    while (left-- > 0) {
      const path = paths[left % paths.length]!;
      const start = performance.now();
      const { statusCode, body } = await pool.request({ method: 'GET', path, headers });
      const { byteLength } = await body.arrayBuffer();
      if (statusCode !== 200 || byteLength !== 1024)
        throw new Error(`${origin}: ${statusCode}, ${byteLength} bytes`);
      times.push(performance.now() - start);
    }
  }
  const start = performance.now();
  await Promise.all(Array.from({ length: connections }, one));
  const seconds = (performance.now() - start) / 1000;
  return { perSecond: requests / seconds, p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}

process.on('message', (job: Job) => void run(job).then((seen) => process.send!(seen)));
// The benchmark process has ended.
process.once('disconnect', () => process.exit());
