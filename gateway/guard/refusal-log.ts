import { actorOf, type Logger } from '@content-platform/chassis';
import type { RequestContext } from '../request-context.ts';

const windowMs = 60_000;
/** 401 replies to one address within the window that make a log line. A client with an expired token causes one or two. */
const repeated = 10;
/** 403 replies to one caller within the window that are logged: otherwise a user could fill the disk with log lines. */
const maxForbidden = 30;
/** Above this number of callers and addresses within a window, further ones are neither counted nor logged. */
const maxCounted = 10_000;

interface Refusal {
  method: string;
  route: string;
  status: number;
}

/**
 * Returns a function that logs refusals (ASVS 5.0 16.3.2): 403 replies with their caller, at most 30 lines a minute for
 * each, and one line for each address with repeated 401 within a minute. `now` in ms.
 */
export function createRefusalLog(logger: Logger, now: () => number = () => performance.now()) {
  let counts = new Map<string, number>();
  let since = now();

  function count(key: string): number {
    if (now() - since > windowMs) [counts, since] = [new Map(), now()];
    if (!counts.has(key) && counts.size >= maxCounted) return Infinity;
    const times = (counts.get(key) ?? 0) + 1;
    counts.set(key, times);
    return times;
  }

  return ({ requestId, caller, address }: RequestContext, { method, route, status }: Refusal): void => {
    const fields = { request_id: requestId, address, method, route };
    if (status === 403) {
      const who = caller && actorOf(caller);
      const times = count(`403 ${who ?? address}`);
      if (times <= maxForbidden) logger.info({ ...fields, caller: who }, 'a request was forbidden');
      if (times === maxForbidden) {
        const message = `${maxForbidden} requests of one caller were refused with 403 within a minute; further ones are not logged`;
        logger.warn({ address, caller: who }, message);
      }
    } else if (status === 401 && count(`401 ${address}`) === repeated) {
      logger.warn(fields, `${repeated} requests of one address were refused with 401 within a minute`);
    }
  };
}
