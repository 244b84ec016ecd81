import { createBreaker, withTimeout } from './concurrency.ts';
import type { Logger } from './logger.ts';
import type { ServiceFetch } from './service-tokens.ts';
import { actorOf, type Caller } from './tokens.ts';

interface AuditedAction {
  event: 'letter_read' | 'failed_jobs_deleted';
  caller: Caller;
  address: string;
  /** The user whom the action is about. */
  userId?: number;
  details: Record<string, unknown>;
}

/** Adds the action to auth's audit log. Resolves with whether auth stored it, within 1 s. Never rejects. */
export type AddToAudit = (action: AuditedAction) => Promise<boolean>;

const timeoutMs = 1_000;

/** Creates a client of the audit log at auth's internal listener at `url`. */
export function createAuditClient(url: string, fetchAsService: ServiceFetch, logger: Logger): AddToAudit {
  const breaker = createBreaker(logger, 'auth stores no audit entries; their only record is the log');

  async function send({ event, caller, address, userId, details }: AuditedAction): Promise<true> {
    const response = await fetchAsService(`${url}/audit`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ event, actor: actorOf(caller), address, user_id: userId, details }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    if (response.status !== 204) throw new Error(`${url}/audit answered ${response.status}`);
    return true;
  }

  return async (action) => {
    if (!breaker.allows()) return false;
    try {
      if (!(await withTimeout(send(action), timeoutMs))) throw new Error(`${url}/audit did not answer`);
      breaker.report(true);
      return true;
    } catch (error) {
      breaker.report(false, error);
      return false;
    }
  };
}
