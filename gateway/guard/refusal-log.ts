import { actorOf, type Logger } from '@content-platform/chassis';
import type { RequestContext } from '../request-context.ts';

const windowMs = 60_000;
/** 401 replies to one address within the window that make a log line. A client with an expired token causes one or two. */
const repeated = 10;
/** Above this number of addresses within a window, further ones are not counted. */
const maxAddresses = 10_000;

interface Refusal {
  method: string;
  route: string;
  status: number;
}

/**
 * Returns a function that logs refusals (ASVS 5.0 16.3.2): each 403 with its caller, and one line for each address with
 * repeated 401 within a minute. `now` in ms.
 */
export function createRefusalLog(logger: Logger, now: () => number = () => performance.now()) {
  let counts = new Map<string, number>();
  let since = now();

  function countUnauthorized(address: string): number {
    if (now() - since > windowMs) [counts, since] = [new Map(), now()];
    if (!counts.has(address) && counts.size >= maxAddresses) return 0;
    const count = (counts.get(address) ?? 0) + 1;
    counts.set(address, count);
    return count;
  }

  return ({ requestId, caller, address }: RequestContext, { method, route, status }: Refusal): void => {
    if (status === 403) {
      const who = caller && actorOf(caller);
      logger.info({ request_id: requestId, caller: who, address, method, route }, 'a request was forbidden');
    } else if (status === 401 && countUnauthorized(address) === repeated) {
      const fields = { request_id: requestId, address, method, route };
      logger.warn(fields, `${repeated} requests of one address were refused with 401 within a minute`);
    }
  };
}
