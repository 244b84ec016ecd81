import {
  actorOf,
  type AddToAudit,
  etagOf,
  HttpError,
  matchesIfMatch,
  type Caller,
  type Logger,
} from '@content-platform/chassis';
import type { Letter } from '@content-platform/contract';

/** 404, for a letter that does not exist and for one that the caller may not see. */
export function letterNotFound(id: number): HttpError<'not_found'> {
  return new HttpError('not_found', `Letter ${id} was not found.`);
}

export interface AuditDeps {
  addToAudit: AddToAudit;
  logger: Logger;
}

/** Writes to the audit log and the log who read the letter, unless it is the caller's own. */
export async function auditReading(
  { addToAudit, logger }: AuditDeps,
  { id, user_id: userId }: Letter,
  { caller, address }: { caller: Caller; address: string },
): Promise<void> {
  if (caller.kind === 'user' && caller.id === userId) return;
  const details = { letter_id: id };
  const audited = await addToAudit({ event: 'letter_read', caller, address, userId, details });
  const read = { requested_by: actorOf(caller), letter_id: id, user_id: userId, audited };
  logger.info(read, 'staff read the letter of a user');
}

/** Throws 409 if the letter is sent or closed: its title and skipped webforms can no longer change. */
export function checkChangeable({ id, state }: Letter): void {
  if (state !== 'sent' && state !== 'closed') return;
  throw new HttpError('letter_closed', `Letter ${id} is ${state} and can no longer change.`, {
    details: [{ path: 'state', message: state }],
  });
}

/** Returns the ETag of a letter, which is the same in every reply. */
export const etagOfLetter = (letter: Letter): string => etagOf(JSON.stringify(letter));

/** Throws 412 if the letter has changed since the client read it. */
export function checkIfMatch(ifMatch: string | undefined, letter: Letter): void {
  if (matchesIfMatch(ifMatch, etagOfLetter(letter))) return;
  throw new HttpError('precondition_failed', `Letter ${letter.id} has changed; read it again.`);
}
