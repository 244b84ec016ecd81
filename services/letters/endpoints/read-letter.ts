import { isCurrent, type Handler, type Logger } from '@content-platform/chassis';
import type { readLetter as contract } from '@content-platform/contract';
import type { LetterStore } from '../letter-store.ts';
import { etagOfLetter, findReadable } from '../replies.ts';

export function readLetter(deps: { letters: LetterStore; logger: Logger }): Handler<typeof contract> {
  return async ({ caller, params: { id }, header }) => {
    const letter = await findReadable(deps, id, caller);
    const etag = etagOfLetter(letter);
    const headers = { ETag: etag, 'Cache-Control': 'private, no-cache' };
    if (isCurrent(header('if-none-match'), etag)) return { status: 304, headers };
    return { status: 200, body: letter, headers };
  };
}
