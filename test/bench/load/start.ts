import { once } from 'node:events';
import { startHelper } from '../gateway/processes.ts';

/** Starts a load generator in its own process. It receives jobs and returns the results of each. */
export function startLoad<Job extends object, Seen>(script: string) {
  const child = startHelper(script);
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the load ended: see above')));
  ended.catch(() => undefined);
  return {
    pid: child.pid!,
    /** Sends a message without a reply. */
    post: (message: object) => void child.send(message),
    async send(job: Job): Promise<Seen> {
      child.send(job);
      const [seen] = (await Promise.race([once(child, 'message'), ended])) as [Seen];
      return seen;
    },
  };
}
export type Load<Job extends object, Seen> = ReturnType<typeof startLoad<Job, Seen>>;
