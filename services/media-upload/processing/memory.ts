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
