import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import type { Job, Seen } from './job.ts';

/** Has the load send requests, and resolves with what it saw. */
export async function send(load: ChildProcess, job: Job): Promise<Seen> {
  load.send(job);
  const ended = new AbortController();
  const { signal } = ended;
  try {
    return await Promise.race([
      once(load, 'message', { signal }).then(([seen]) => seen as Seen),
      once(load, 'exit', { signal }).then(() => {
        throw new Error('the load ended: see above');
      }),
    ]);
  } finally {
    ended.abort();
  }
}
