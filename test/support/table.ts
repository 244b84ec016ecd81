/** Formats a number: three digits, or an integer with separators. */
export const round = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(3)));

/** Returns a Markdown table without padding; the first row is the head. Numbers are rounded and right-aligned. */
export function table(rows: readonly (readonly (string | number)[])[]): string {
  const line = (row: readonly string[]) => `|${row.map((cell) => (cell ? ` ${cell} |` : ' |')).join('')}`;
  const [head, ...body] = rows.map((row) =>
    row.map((cell) => (typeof cell === 'number' ? round(cell) : cell)),
  );
  const align = (rows[1] ?? rows[0])!.map((cell) => (typeof cell === 'number' ? '--:' : '---'));
  return [head!, align, ...body].map(line).join('\n');
}
