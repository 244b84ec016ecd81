/** Returns at most `limit` items. Reads one row more: if it exists, `next_cursor` is the id of the last item. */
export async function page<Row extends { id: number }, Item = Row>(
  limit: number,
  read: (limit: number) => Promise<readonly Row[]>,
  toItem: (row: Row) => Item = (row) => row as never,
) {
  const rows = await read(limit + 1);
  const shown = rows.slice(0, limit);
  return { items: shown.map(toItem), next_cursor: rows.length > limit ? String(shown.at(-1)!.id) : null };
}
