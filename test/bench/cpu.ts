import { readFileSync } from 'node:fs';
import { descendantsOf } from '../support/processes.ts';

/** CPU that a process and its children have taken so far, those that have ended, too, in µs (Linux: proc(5), stat). */
export function cpuOf(pid: number): number {
  let ticks = 0;
  for (const each of [pid, ...descendantsOf(pid)]) {
    // After the name, which is in parentheses, utime is the 12th; then stime, and both of children that have ended.
    const fields = readFileSync(`/proc/${each}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    for (const field of fields.slice(11, 15)) ticks += Number(field);
  }
  return ticks * 10_000;
}
