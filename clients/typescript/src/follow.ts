import type { Change, Model, Operations } from './contract.ts';
import { PlatformError } from './errors.ts';
import { isTemporary, pauseAfter } from './retry.ts';
import { sleep } from './signals.ts';

export interface FollowOptions {
  /** `cursor` of the last step that you stored; leave it out to begin with every record. */
  after?: string | undefined;
  /** Default: every model that the user may list. */
  models?: readonly Model[] | undefined;
  /** Pause in ms between two calls once everything is known. Default: 5,000. */
  intervalMs?: number | undefined;
  /** Called with each error after which `follow` tries again. */
  onError?: ((error: PlatformError) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** The next changes, or none, at least once a day. Store `cursor` when you have handled all of them. */
export interface FollowStep {
  changes: Change[];
  cursor: string;
  /** The changes begin with the first record: discard your copy before you handle them. */
  startOver: boolean;
  /** You have every change that was committed before this step. */
  upToDate: boolean;
}

const dayMs = 86_400_000;

type Input = Operations['listChanges']['input'];
type Output = Operations['listChanges']['output'];

const isExpired = (error: unknown): boolean =>
  error instanceof PlatformError && error.code === 'cursor_expired';
const isRetried = (error: unknown): error is PlatformError =>
  isTemporary(error) ||
  // The login page of a network also gives an unexpected reply.
  (error instanceof PlatformError && (error.status === 500 || error.code === 'unexpected_reply'));

/** Yields the changes in steps, waits for more, and tries again after temporary errors until the signal fires. */
export async function* followChanges(
  fetchChanges: (input: Input) => Promise<Output>,
  { after, models, intervalMs = 5_000, onError, signal }: FollowOptions,
): AsyncGenerator<FollowStep, never, undefined> {
  /** Waits for a random time near `intervalMs`, so that clients do not call at the same time. */
  const pause = () => sleep(intervalMs * (0.75 + Math.random() / 2), signal);
  let failures = 0;
  let startOver = after === undefined;
  let wasUpToDate = false;
  let dueAt = Infinity;
  for (;;) {
    let page: Output;
    try {
      page = await fetchChanges({ after, models: models?.join() });
    } catch (error) {
      if (isExpired(error) && after !== undefined) {
        [after, startOver] = [undefined, true];
        // While a release adds a model, the next cursor may expire as well.
        await pause();
        continue;
      }
      if (!isRetried(error)) throw error;
      onError?.(error);
      await sleep(pauseAfter(error, failures), signal);
      failures += 1;
      continue;
    }
    const { items: changes, next_cursor: cursor, up_to_date: upToDate } = page;
    // Once a day without changes, too: the platform knows a stored cursor for 30 days.
    if (changes.length > 0 || startOver || upToDate !== wasUpToDate || Date.now() > dueAt) {
      yield { changes, cursor, startOver, upToDate };
      dueAt = Date.now() + dayMs;
    }
    [after, startOver, wasUpToDate, failures] = [cursor, false, upToDate, 0];
    if (upToDate) await pause();
    else signal?.throwIfAborted();
  }
}
