/** Returns a Markdown table without padding, so that one changed cell changes one line. The first row is the head. */
export function table(rows: readonly (readonly string[])[]): string {
  const line = (row: readonly string[]) => `|${row.map((cell) => (cell ? ` ${cell} |` : ' |')).join('')}`;
  const [head, ...body] = rows;
  return [line(head!), line(head!.map(() => '---')), ...body.map(line)].join('\n');
}
