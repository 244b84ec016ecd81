import { services, urlVariable } from '@content-platform/contract';
import { execFileSync } from 'node:child_process';

interface Entry {
  pid: number;
  parent: number;
  rss: number;
}

function table(): Entry[] {
  const output = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,rss=,stat='], { encoding: 'utf8' });
  return output
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state]) => !state!.startsWith('Z'))
    .map(([pid, parent, rss]) => ({ pid: Number(pid), parent: Number(parent), rss: Number(rss) * 1024 }));
}

function below(all: Entry[], of: number): Entry[] {
  return all.filter(({ parent }) => parent === of).flatMap((entry) => [entry, ...below(all, entry.pid)]);
}

/** Returns the pids of all running descendants of `pid`. */
export function descendantsOf(pid: number): number[] {
  return below(table(), pid).map((entry) => entry.pid);
}

/** Returns the resident memory of a process and all its descendants, in bytes. */
export function treeRss(pid: number): number {
  const all = table();
  return [...all.filter((entry) => entry.pid === pid), ...below(all, pid)].reduce(
    (sum, { rss }) => sum + rss,
    0,
  );
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const nowhere = 'http://127.0.0.1:1';

/** Environment without the developer's settings and the default URLs: nothing listens at the URLs here. */
export const bareEnvironment: NodeJS.ProcessEnv = {
  ...Object.fromEntries(services.map(({ name }) => [urlVariable(name), nowhere])),
  AUTH_INTERNAL_URL: nowhere,
  INTERNAL_URLS: nowhere,
  REDIS_URL: 'redis://127.0.0.1:1',
  SERVICE_SECRET: 'a-service-secret-that-no-auth-knows',
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
};
