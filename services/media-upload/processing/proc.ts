import { readFileSync } from 'node:fs';

/**
 * Memory that a process has in use, in bytes (proc_pid_status(5), VmRSS); 0 when it is gone, or where there is no /proc.
 * Read at once: it is no file on a disk, and what is asked for must not have changed meanwhile.
 */
export function rssOf(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}

/** Ticks of a second in /proc/<pid>/stat: on Linux always these (proc_pid_stat(5), USER_HZ). */
const ticks = 100;

/** Time on a core that a process has had, in ms (proc_pid_stat(5), utime and stime); 0 where rssOf is. */
export function cpuMsOf(pid: number | undefined): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Behind the name, which may hold anything: the fields from the third on.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticks;
  } catch {
    return 0;
  }
}
