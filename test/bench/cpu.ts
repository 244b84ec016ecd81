import { readFileSync } from 'node:fs';
import { descendantsOf } from '../support/processes.ts';

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
