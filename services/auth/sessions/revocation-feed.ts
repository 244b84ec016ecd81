import { EventEmitter, once } from 'node:events';
import type { Stores } from '../stores.ts';

const waitMs = 2_000;
/** Age up to which a state is sent without reading again. Normally none is older, because auth reads twice a second. */
const freshMs = 1_000;

/** Serves revocations and valid keys to every process. auth itself calls `read` twice a second, which finds news. */
export function createRevocationFeed({ revocations, signingKeys }: Stores) {
  const events = new EventEmitter().setMaxListeners(0);
  let newest = { last: 0, keys: [] as string[], version: '', readAt: -Infinity };

  /** Returns the revocations after an id, and the kids of the valid keys. `version` names this state of both. */
  async function read(after: number) {
    const readAt = performance.now();
    // Read first, because a revocation may follow the withdrawal of a key.
    const keys = await signingKeys.listKids();
    const page = await revocations.listAfter(after);
    const version = [page.last, ...keys].join(' ');
    const isNew = version !== newest.version;
    newest = { last: page.last, keys, version, readAt };
    if (isNew) events.emit('news');
    return { ...page, keys, version };
  }

  return {
    read,
    /** As `read`, but waits up to 2 s for news while `known` is the newest version. */
    async readNext(after: number, known: string) {
      if (known === newest.version)
        await once(events, 'news', { signal: AbortSignal.timeout(waitMs) }).catch(() => undefined);
      const { readAt, ...state } = newest;
      if (known !== state.version || performance.now() - readAt > freshMs) return read(after);
      return { revocations: [], ...state };
    },
    /** Lets the waiting readers go on. */
    close: () => void events.emit('news'),
  };
}
