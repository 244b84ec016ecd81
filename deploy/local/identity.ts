import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Identifies a process by pid and start time, because pids are reused. */
export interface Identity {
  pid: number;
  began: string;
}

/** Returns the start time of a process in the system's format; undefined if the process does not exist. */
function startTimeOf(pid: number): string | undefined {
  try {
    if (process.platform !== 'linux') {
      // Otherwise the text depends on the time zone and the language.
      const options = { encoding: 'utf8', env: { TZ: 'UTC', LC_ALL: 'C' } } as const;
      return execFileSync('/bin/ps', ['-o', 'lstart=', '-p', String(pid)], options).trim() || undefined;
    }
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in parentheses. It may itself contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Zombie: dead, not yet reaped by its parent. While threads are left, its ports are still in use.
    if (fields[0] === 'Z' && Number(fields[17]) <= 1) return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${fields[19]}`;
  } catch {
    return undefined;
  }
}

/** Returns the identity of a running process; undefined if it has ended. */
export function identityOf(pid: number): Identity | undefined {
  const began = startTimeOf(pid);
  return began === undefined ? undefined : { pid, began };
}

export const isRunning = (identity: Identity): boolean => startTimeOf(identity.pid) === identity.began;

/** Sends a signal to a process, or to a process group by its negative pid, unless it has ended. */
export function sendSignal(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid) process.kill(pid, signal);
  } catch {
    // The process has already ended.
  }
}
