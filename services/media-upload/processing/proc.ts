import { readFileSync } from 'node:fs';

/** Returns the memory that a process uses, in bytes (proc_pid_status(5), VmRSS); 0 if it has ended, or without /proc. */
export function rssOf(pid: number): number {
  try {
    // Synchronously: /proc is not on a disk, and the value must be current.
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}

/** Unit of time in /proc/<pid>/stat on Linux (proc_pid_stat(5), USER_HZ). */
const ticksPerSecond = 100;

/** Returns the CPU time that a process has used, in ms (proc_pid_stat(5), utime and stime); 0 in the same cases as rssOf. */
export function cpuMsOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The fields from the third on follow the name, which may contain anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond;
  } catch {
    return 0;
  }
}
