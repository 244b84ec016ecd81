import { type Caller, type Handler, matchesIfNoneMatch, page } from '@content-platform/chassis';
import type { Letter } from '@content-platform/contract';
import type * as contract from '@content-platform/contract';
import type { LetterStore } from '../letter-store.ts';
import { type AuditDeps, auditReading, etagOfLetter, letterNotFound } from '../replies.ts';

interface ReadDeps extends AuditDeps {
  letters: LetterStore;
}

/** Returns a letter of the caller, or with letters:write of any user, and audits the reading. Throws 404. */
async function findAndAudit(
  deps: ReadDeps,
  id: number,
  reader: { caller: Extract<Caller, { kind: 'user' }>; address: string },
): Promise<Letter> {
  const { caller } = reader;
  const letter = await deps.letters.find(id, caller.scopes.has('letters:write') ? 'any' : caller.id);
  if (!letter) throw letterNotFound(id);
  await auditReading(deps, letter, reader);
  return letter;
}

export function listLetters({ letters }: ReadDeps): Handler<typeof contract.listLetters> {
  return async ({ caller, query: { state, limit, cursor } }) => {
    const read = (rows: number) => letters.list(caller.id, state, cursor, rows);
    return { status: 200, body: await page(limit, read) };
  };
}

export function readLetter(deps: ReadDeps): Handler<typeof contract.readLetter> {
  return async ({ params: { id }, header, ...reader }) => {
    const letter = await findAndAudit(deps, id, reader);
    const etag = etagOfLetter(letter);
    const headers = { ETag: etag, 'Cache-Control': 'private, no-cache' };
    if (matchesIfNoneMatch(header('if-none-match'), etag)) return { status: 304, headers };
    return { status: 200, body: letter, headers };
  };
}

export function readLetterHistory(deps: ReadDeps): Handler<typeof contract.readLetterHistory> {
  return async ({ params: { id }, query: { limit, cursor }, ...reader }) => {
    await findAndAudit(deps, id, reader);
    return { status: 200, body: await page(limit, (rows) => deps.letters.history(id, cursor, rows)) };
  };
}
