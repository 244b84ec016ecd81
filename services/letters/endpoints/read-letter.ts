import { matchesIfNoneMatch, type Handler } from '@content-platform/chassis';
import type { readLetter as contract } from '@content-platform/contract';
import { etagOfLetter, findReadable, type ReadDeps } from '../replies.ts';

export function readLetter(deps: ReadDeps): Handler<typeof contract> {
  return async ({ caller, address, params: { id }, header }) => {
    const letter = await findReadable(deps, id, { caller, address });
    const etag = etagOfLetter(letter);
    const headers = { ETag: etag, 'Cache-Control': 'private, no-cache' };
    if (matchesIfNoneMatch(header('if-none-match'), etag)) return { status: 304, headers };
    return { status: 200, body: letter, headers };
  };
}
