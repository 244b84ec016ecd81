import { createSemaphore, type Release, type Semaphore, unavailable } from '@content-platform/chassis';

export interface JobQueueOptions {
  /** Maximum number of running jobs, in total and for each user. */
  size: number;
  /** Maximum number of waiting jobs, in total and for each user. */
  maxWaiting: number;
  /** Maximum wait of a job before each attempt, in ms. */
  waitMs: number;
}

/** Attempts a job, with or without other running jobs. 'crowded': all jobs together use too much memory. */
type Attempt<T> = (isAlone: boolean) => Promise<T | 'crowded'>;

export const overloaded = () => unavailable('The server is overloaded. Retry later.');

/** Schedules jobs. Up to `size` jobs of a user run or wait for a slot. The others do not delay other users' jobs. */
export function createJobQueue({ size, maxWaiting, waitMs }: JobQueueOptions) {
  const slots = createSemaphore(size, maxWaiting);
  const alone = createSemaphore(1, maxWaiting);
  const users = new Map<number, { limit: Semaphore; jobs: number }>();

  /** Throws 503 after `waitMs`. */
  async function waitAtMost<T>(signal: AbortSignal, wait: (limited: AbortSignal) => Promise<T>): Promise<T> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
    return wait(limited).catch((error: unknown) => {
      signal.throwIfAborted();
      throw limited.aborted ? overloaded() : error;
    });
  }

  /** Resolves when the user may have one more job and a slot is free. */
  async function waitForSlot(userLimit: Semaphore, signal: AbortSignal) {
    const releaseUser = await userLimit.acquire(signal);
    try {
      return [releaseUser, await slots.acquire(signal)] as const;
    } catch (error) {
      releaseUser();
      throw error;
    }
  }

  /** Takes every slot. Only one job at a time may do so; two would wait for each other's slots. */
  async function waitForAllSlots(signal: AbortSignal): Promise<Release> {
    const held = [await alone.acquire(signal)];
    const releaseAll = () => held.forEach((release) => release());
    try {
      // `held` also contains `alone`.
      while (held.length <= size) held.push(await slots.acquire(signal));
      return releaseAll;
    } catch (error) {
      releaseAll();
      throw error;
    }
  }

  async function runWithin<T>(userLimit: Semaphore, signal: AbortSignal, attempt: Attempt<T>): Promise<T> {
    const [releaseUser, release] = await waitAtMost(signal, (limited) => waitForSlot(userLimit, limited));
    try {
      const first = await attempt(false).finally(release);
      if (first !== 'crowded') return first;
      const releaseAll = await waitAtMost(signal, waitForAllSlots);
      const second = await attempt(true).finally(releaseAll);
      if (second === 'crowded') throw overloaded();
      return second;
    } finally {
      releaseUser();
    }
  }

  return {
    /** Runs `attempt` and, if that is 'crowded', again without other jobs. Throws 503 if the job waited too long. */
    async run<T>(userId: number, signal: AbortSignal, attempt: Attempt<T>): Promise<T> {
      const user = users.get(userId) ?? { limit: createSemaphore(size, maxWaiting), jobs: 0 };
      users.set(userId, user);
      user.jobs += 1;
      try {
        return await runWithin(user.limit, signal, attempt);
      } finally {
        user.jobs -= 1;
        if (user.jobs === 0) users.delete(userId);
      }
    },
  };
}
