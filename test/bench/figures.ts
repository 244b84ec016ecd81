import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { descendantsOf } from '../support/processes.ts';

/** Scales the workload or the duration of a bench; BENCH_SCALE=0.1 is a trial run. */
export const scale = Number(process.env['BENCH_SCALE'] ?? 1);

/** Returns the CPU time of a process and its children, including ended children, in µs (Linux: proc(5), stat). */
export function cpuOf(pid: number): number {
  let ticks = 0;
  for (const each of [pid, ...descendantsOf(pid)]) {
    // utime is the 12th field after the name in parentheses. stime and the times of ended children follow.
    const fields = readFileSync(`/proc/${each}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    for (const field of fields.slice(11, 15)) ticks += Number(field);
  }
  return ticks * 10_000;
}

/** Returns a number of INFO; NaN if it is missing. */
const figureOf = (info: string, name: string): number =>
  Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);

/** Returns the CPU time of the server in µs. More precise than `cpuOf`, whose ticks are 10 ms. */
export async function redisCpu(admin: Redis): Promise<number> {
  const info = await admin.info('cpu');
  return (figureOf(info, 'used_cpu_user') + figureOf(info, 'used_cpu_sys')) * 1e6;
}

export async function scanCalls(admin: Redis): Promise<number> {
  return Number(/^cmdstat_scan:calls=(\d+)/m.exec(await admin.info('commandstats'))?.[1] ?? 0);
}

export const redisVersion = async (admin: Redis): Promise<string> =>
  /^redis_version:(\S+)/m.exec(await admin.info('server'))![1]!;
