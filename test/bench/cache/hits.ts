import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import type { Redis } from 'ioredis';
import { cpuOf } from '../cpu.ts';
import { connections, type Job, type Seen } from '../gateway/job.ts';
import { redisCpu } from '../redis-figures.ts';

export { connections };

/** One round of a candidate; CPU for a request, in µs. */
export type HitRound = Seen & { gateway: number; service: number; redis: number };

export interface Processes {
  gateway: ChildProcess;
  service: ChildProcess;
  admin: Redis;
}

/** Has the load send requests, and resolves with what it saw. */
export async function send(load: ChildProcess, job: Job): Promise<Seen> {
  load.send(job);
  const ended = new AbortController();
  const { signal } = ended;
  try {
    return await Promise.race([
      once(load, 'message', { signal }).then(([seen]) => seen as Seen),
      once(load, 'exit', { signal }).then(() => {
        throw new Error('the load ended: see above');
      }),
    ]);
  } finally {
    ended.abort();
  }
}

/** One round. */
export async function measureHits(load: ChildProcess, job: Job, of: Processes): Promise<HitRound> {
  const cpu = async () => [cpuOf(of.gateway.pid!), cpuOf(of.service.pid!), await redisCpu(of.admin)] as const;
  const before = await cpu();
  const seen = await send(load, job);
  const after = await cpu();
  const [gateway, service, redis] = after.map((us, index) => (us - before[index]!) / job.requests);
  return { ...seen, gateway: gateway!, service: service!, redis: redis! };
}
