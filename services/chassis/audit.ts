import type { Logger } from './logger.ts';
import { createPost, type ServiceFetch } from './service-tokens.ts';
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

/** Creates a client of the audit log at auth's internal listener at `url`. */
export function createAuditClient(url: string, fetchAsService: ServiceFetch, logger: Logger): AddToAudit {
  const message = 'auth stores no audit entries; their only record is the log';
  const post = createPost(`${url}/audit`, fetchAsService, logger, message);
  return ({ event, caller, address, userId, details }) =>
    post({ event, actor: actorOf(caller), address, user_id: userId, details });
}
