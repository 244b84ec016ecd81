import { etagOf, HttpError, ifMatchHolds } from '@content-platform/chassis';
import type { Letter } from '@content-platform/contract';

/** The same for a letter that is not there and for one that is none of the caller's business. */
export function noLetter(id: number): HttpError<'not_found'> {
  return new HttpError(404, 'not_found', `There is no letter ${id}.`);
}

/** 409: it does not change any more. */
export function letterClosed({ id, state }: Letter): HttpError<'letter_closed'> {
  return new HttpError(409, 'letter_closed', `Letter ${id} is ${state} and does not change any more.`, [
    { path: 'state', message: state },
  ]);
}

/** The ETag of a letter, in whatever reply it comes. */
export function etagOfLetter(letter: Letter): string {
  return etagOf(JSON.stringify(letter));
}

/** Throws 412 when the letter has changed since the client read it. */
export function checkIfMatch(ifMatch: string | undefined, letter: Letter): void {
  if (ifMatchHolds(ifMatch, etagOfLetter(letter))) return;
  throw new HttpError(412, 'precondition_failed', `Letter ${letter.id} has changed; read it again.`);
}
