import type { ChildProcess } from 'node:child_process';
import type { Redis } from 'ioredis';
import { cpuOf } from '../cpu.ts';
import type { Job, Seen } from '../gateway/job.ts';
import type { Load } from '../load/start.ts';
import { redisCpu } from '../redis-figures.ts';

/** One round of a candidate; CPU for a request, in µs. */
export type HitRound = Seen & { gateway: number; service: number; redis: number };

export interface Processes {
  gateway: ChildProcess;
  service: ChildProcess;
  admin: Redis;
}

/** Measures one round. */
export async function measureHits(load: Load<Job, Seen>, job: Job, of: Processes): Promise<HitRound> {
  const cpu = async () => [cpuOf(of.gateway.pid!), cpuOf(of.service.pid!), await redisCpu(of.admin)] as const;
  const before = await cpu();
  const seen = await load.send(job);
  const after = await cpu();
  const [gateway, service, redis] = after.map((us, index) => (us - before[index]!) / job.requests);
  return { ...seen, gateway: gateway!, service: service!, redis: redis! };
}
