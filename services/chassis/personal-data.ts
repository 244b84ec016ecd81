import { Readable } from 'node:stream';
import { z } from 'zod';
import type { createInternalEndpoints } from './internal-endpoints.ts';

/** Minimum length of a piece of a stream, in characters. */
const pieceLength = 65_536;
const query = z.strictObject({ user_id: z.string().regex(/^[1-9]\d{0,15}$/) });

/** Yields the rows of all pages; `read` returns those after `last`. Reads the first page now, so that it fails early. */
export async function rowsOf<Row>(
  read: (last?: Row) => Promise<readonly Row[]>,
): Promise<AsyncGenerator<Row>> {
  const first = await read();
  return (async function* () {
    for (let rows = first; rows.length > 0; rows = await read(rows.at(-1))) yield* rows;
  })();
}

/** Yields a JSON array in parts. `textOf`: the JSON of an item, in parts. */
export async function* jsonArray<Item>(
  items: AsyncIterable<Item>,
  textOf: (item: Item) => Iterable<string> | AsyncIterable<string> = (item) => [JSON.stringify(item)],
): AsyncGenerator<string> {
  let before = '[';
  for await (const item of items) {
    yield before;
    yield* textOf(item);
    before = ',';
  }
  yield before === '[' ? '[]' : ']';
}

async function* inPieces(parts: AsyncIterable<string>): AsyncGenerator<string> {
  let text = '';
  for await (const part of parts) {
    text += part;
    if (text.length < pieceLength) continue;
    yield text;
    text = '';
  }
  yield text;
}

/** Serves `GET /export?user_id=<id>` for auth: what the service stores about the user. `list`: see `jsonArray`. */
export function serveExport(
  { serve }: ReturnType<typeof createInternalEndpoints>,
  list: (userId: number) => Promise<AsyncIterable<string>>,
): void {
  serve('GET', '/export', {
    schema: query,
    only: 'auth',
    answer: async ({ user_id: userId }) => Readable.from(inPieces(await list(Number(userId)))),
  });
}
