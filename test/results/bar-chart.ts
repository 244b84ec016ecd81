/** A Mermaid chart with a horizontal bar for each label. */
export function barChart(title: string, bars: readonly (readonly [label: string, value: number])[]): string {
  return [
    '```mermaid',
    'xychart-beta horizontal',
    `  title "${title}"`,
    `  x-axis [${bars.map(([label]) => JSON.stringify(label)).join(', ')}]`,
    `  bar [${bars.map(([, value]) => Number(value.toPrecision(3))).join(', ')}]`,
    '```',
  ].join('\n');
}
