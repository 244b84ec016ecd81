import { once } from 'node:events';
import { startHelper } from '../gateway/processes.ts';
import type { Job, Seen } from './job.ts';

/** Starts the load, in a process of its own. */
export function startLoad() {
  const child = startHelper('test/bench/load/main.ts');
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the load ended: see above')));
  ended.catch(() => undefined);
  return {
    pid: child.pid!,
    /** Whose tokens are sent, in turns. */
    use: (tokens: readonly string[]) => void child.send(tokens),
    async send(job: Job): Promise<Seen> {
      child.send(job);
      const [seen] = (await Promise.race([once(child, 'message'), ended])) as [Seen];
      return seen;
    },
  };
}
