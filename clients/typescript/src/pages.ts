import type { Operations } from './contract.ts';

/** Operations that return a list in pages. */
export type ListName = {
  [K in keyof Operations]: 'cursor' extends keyof Operations[K]['input'] ? K : never;
}[keyof Operations];

export type ItemOf<K extends ListName> = Operations[K]['output']['items'][number];

interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** Yields the items of all pages, and asks for a page when its first item is needed. */
export async function* itemsOf<T>(
  fetchPage: (cursor: string | undefined) => Promise<Page<T>>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, undefined> {
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await fetchPage(cursor);
    for (const item of page.items) {
      signal?.throwIfAborted();
      yield item;
    }
    cursor = page.next_cursor;
  }
}
