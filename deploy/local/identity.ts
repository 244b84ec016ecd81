import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A process, told apart from a later one that was given the same pid by the time it began. */
export interface Identity {
  pid: number;
  began: string;
}

/** When the process began, in the system's own words; undefined when there is no such process. */
function beganAt(pid: number): string | undefined {
  try {
    if (process.platform !== 'linux')
      return (
        execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined
      );
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in parentheses and may hold anything, spaces and parentheses too.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Dead, only not yet collected by its parent; with threads left its ports are still taken.
    if (fields[0] === 'Z' && Number(fields[17]) <= 1) return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${fields[19]}`;
  } catch {
    return undefined;
  }
}

/** The identity of a process that runs now; undefined when it is gone already. */
export function identityOf(pid: number): Identity | undefined {
  const began = beganAt(pid);
  return began === undefined ? undefined : { pid, began };
}

export const isRunning = (identity: Identity): boolean => beganAt(identity.pid) === identity.began;
