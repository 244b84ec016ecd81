import type { Body, Letter, LetterState, updateLetter as contract } from '@content-platform/contract';
import { actorOf, HttpError, type Database, type Handler } from '@content-platform/chassis';
import { createLetterStore, type HistoryEntry } from '../letter-store.ts';
import {
  type AuditDeps,
  checkChangeable,
  checkIfMatch,
  etagOfLetter,
  letterNotFound,
  auditReading,
} from '../replies.ts';

/** The states that may follow each state. */
const nextStates: Record<LetterState, readonly LetterState[]> = {
  draft: ['open', 'closed'],
  open: ['draft', 'sent', 'closed'],
  sent: ['closed'],
  closed: [],
};

/** Returns history entries of the changes. Throws 409 if the letter's state does not allow them. */
function differences(before: Letter, { title, state }: Body<typeof contract>): HistoryEntry[] {
  const entries: HistoryEntry[] = [];
  if (title !== undefined && title !== before.title) {
    checkChangeable(before);
    entries.push({ event: 'title_changed', details: { from: before.title, to: title } });
  }
  if (state !== undefined && state !== before.state) {
    if (!nextStates[before.state].includes(state)) {
      const message = `A letter that is ${before.state} cannot become ${state}.`;
      throw new HttpError('state_change_not_allowed', message, {
        details: [
          { path: 'state', message: before.state },
          { path: 'body.state', message: state },
        ],
      });
    }
    entries.push({ event: 'state_changed', details: { from: before.state, to: state } });
  }
  return entries;
}

export function updateLetter({
  database,
  ...auditDeps
}: AuditDeps & { database: Database }): Handler<typeof contract> {
  return async ({ caller, address, params: { id }, body, header }) => {
    const ifMatch = header('if-match');
    const { letter, isChanged } = await database.transaction(async (query) => {
      const letters = createLetterStore(query);
      const before = await letters.lock(id, 'any');
      if (!before) throw letterNotFound(id);
      if (ifMatch === undefined) {
        throw new HttpError('precondition_required', "Send the letter's ETag in If-Match.");
      }
      checkIfMatch(ifMatch, before);
      const entries = differences(before, body);
      if (entries.length === 0) return { letter: before, isChanged: false };
      const after = { id, title: body.title ?? before.title, state: body.state ?? before.state };
      return { letter: await letters.saveChange(after, actorOf(caller), entries), isChanged: true };
    });
    // The history names the author of a change. If nothing changed, the caller has only read the letter: audit that.
    if (!isChanged) await auditReading(auditDeps, letter, { caller, address });
    return { status: 200, body: letter, headers: { ETag: etagOfLetter(letter) } };
  };
}
