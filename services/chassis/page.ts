/** The body of every list's reply: `next_cursor` is the id of the last item, or null on the last page. */
interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

/** Reads a page of at most `limit` items with one row more, which shows whether another page follows. */
export async function page<Row extends { id: number }, Item = Row>(
  limit: number,
  read: (limit: number) => Promise<readonly Row[]>,
  toItem: (row: Row) => Item = (row) => row as never,
): Promise<Page<Item>> {
  const rows = await read(limit + 1);
  const shown = rows.slice(0, limit);
  return { items: shown.map(toItem), next_cursor: rows.length > limit ? String(shown.at(-1)!.id) : null };
}
