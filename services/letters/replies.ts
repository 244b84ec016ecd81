import { etagOf, HttpError, ifMatchHolds } from '@content-platform/chassis';
import type { Letter } from '@content-platform/contract';

/** 404, for a letter that does not exist and for one that the caller may not see. */
export function noLetter(id: number): HttpError<'not_found'> {
  return new HttpError('not_found', `There is no letter ${id}.`);
}

/** 409, for a letter that is sent or closed. */
export function letterClosed({ id, state }: Letter): HttpError<'letter_closed'> {
  return new HttpError('letter_closed', `Letter ${id} is ${state} and does not change any more.`, {
    details: [{ path: 'state', message: state }],
  });
}

/** Returns the ETag of a letter, which is the same in every reply. */
export function etagOfLetter(letter: Letter): string {
  return etagOf(JSON.stringify(letter));
}

/** Throws 412 if the letter has changed since the client read it. */
export function checkIfMatch(ifMatch: string | undefined, letter: Letter): void {
  if (ifMatchHolds(ifMatch, etagOfLetter(letter))) return;
  throw new HttpError('precondition_failed', `Letter ${letter.id} has changed; read it again.`);
}
