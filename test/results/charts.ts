/** Charts as SVG, simple enough that a changed figure is a readable diff. */

const width = 720;
const ink = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328; } .title { font-weight: 600; font-size: 15px; } .faint { fill: #59636e; }
  .bar { fill: #9aa7b4; } .ours { fill: #0969da; } .grid { stroke: #d1d9e0; } .line { fill: none; stroke-width: 2; }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3; } .faint { fill: #9198a1; } .bar { fill: #656c76; } .ours { fill: #4493f8; } .grid { stroke: #3d444d; } }`;

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const short = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(2)));

function svg(height: number, title: string, body: string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escape(title)}">`,
    `<style>${ink}</style>`,
    `<text class="title" x="0" y="18">${escape(title)}</text>`,
    ...body,
    '</svg>',
    '',
  ].join('\n');
}

export interface Bar {
  label: string;
  value: number;
  isOurs?: boolean;
}

/** Horizontal bars. The longest bar fills the width. `unit` follows each value. */
export function barChart(title: string, unit: string, bars: readonly Bar[]): string {
  const labels = 250;
  const row = 24;
  const most = Math.max(...bars.map(({ value }) => value));
  const body = bars.flatMap(({ label, value, isOurs }, index) => {
    const y = 34 + index * row;
    const length = Math.max(1, Math.round(((width - labels - 110) * value) / most));
    return [
      `<text x="0" y="${y + 13}">${escape(label)}</text>`,
      `<rect class="bar${isOurs ? ' ours' : ''}" x="${labels}" y="${y}" width="${length}" height="17" rx="2"/>`,
      `<text class="faint" x="${labels + length + 6}" y="${y + 13}">${short(value)} ${escape(unit)}</text>`,
    ];
  });
  return svg(40 + bars.length * row, title, body);
}

export interface Line {
  label: string;
  points: readonly (readonly [number, number])[];
}

const colours = ['#0969da', '#bc4c00', '#1a7f37', '#8250df', '#bf3989', '#9a6700', '#59636e'];

/** Lines with a y axis from 0 and a linear or logarithmic x axis. */
export function lineChart(
  title: string,
  axes: { x: string; y: string; isLog?: boolean },
  lines: readonly Line[],
): string {
  const [left, top, right, bottom] = [60, 34, width - 150, 250];
  const along = (x: number) => (axes.isLog ? Math.log10(x) : x);
  const all = lines.flatMap(({ points }) => points);
  const xs = all.map(([x]) => along(x));
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const most = Math.max(...all.map(([, y]) => y)) * 1.05;
  const at = ([x, y]: readonly [number, number]): string => {
    const across = left + ((along(x) - first) / (last - first || 1)) * (right - left);
    return `${across.toFixed(1)},${(bottom - (y / most) * (bottom - top)).toFixed(1)}`;
  };
  const grid = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const y = bottom - part * (bottom - top);
    return `<line class="grid" x1="${left}" x2="${right}" y1="${y}" y2="${y}"/><text class="faint" x="${left - 6}" y="${y + 4}" text-anchor="end">${short(part * most)}</text>`;
  });
  const ticks = [...new Set(all.map(([x]) => x))].toSorted((a, b) => a - b);
  const shown = ticks.length <= 8 ? ticks : [ticks[0]!, ticks[Math.floor(ticks.length / 2)]!, ticks.at(-1)!];
  const below = shown.map(
    (x) =>
      `<text class="faint" x="${at([x, 0]).split(',')[0]}" y="${bottom + 18}" text-anchor="middle">${short(x)}</text>`,
  );
  const drawn = lines.flatMap(({ label, points }, index) => {
    const colour = colours[index % colours.length]!;
    return [
      `<polyline class="line" stroke="${colour}" points="${points.map(at).join(' ')}"/>`,
      `<rect x="${right + 12}" y="${top + index * 20}" width="12" height="12" fill="${colour}"/>`,
      `<text x="${right + 30}" y="${top + 11 + index * 20}">${escape(label)}</text>`,
    ];
  });
  const names = [
    `<text class="faint" x="${left}" y="${top - 2}">${escape(axes.y)}</text>`,
    `<text class="faint" x="${right}" y="${bottom + 36}" text-anchor="end">${escape(axes.x)}</text>`,
  ];
  return svg(bottom + 44, title, [...grid, ...below, ...drawn, ...names]);
}
