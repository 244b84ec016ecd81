import type { Target } from '@content-platform/contract';
import { format } from './format.ts';
import { html, type Html } from './html.ts';

const width = 240;
const height = 40;
const hourMs = 3_600_000;
/** Minimum time span of a line, soon after the start. */
const shortestMs = 300_000;

interface Point {
  /** ms */
  at: number;
  value: number | null;
}

/** Joins the points, with a gap where a value is missing. */
function path(points: readonly Point[], x: (at: number) => string, y: (value: number) => string): string {
  return points
    .map(({ at, value }, index) => {
      if (value === null) return '';
      const begins = (points[index - 1]?.value ?? null) === null;
      return `${begins ? 'M' : 'L'}${x(at)} ${y(value)}`;
    })
    .join('');
}

/** Draws the known values of the hour before `now` (ms), and the goal as a second line. */
export function sparkline(points: readonly Point[], { goal, unit }: Target, now: number): Html {
  const values = points.map(({ value }) => value).filter((value) => value !== null);
  if (values.length < 2) return html`<p class="line note">The line appears after the second value.</p>`;
  const top = Math.max(...values, goal ?? 0) * 1.1 || 1;
  const span = Math.min(hourMs, Math.max(shortestMs, now - points[0]!.at));
  const x = (at: number) => ((1 - (now - at) / span) * width).toFixed(1);
  const time = span === hourMs ? 'hour' : `${Math.round(span / 60_000)} min`;
  const y = (value: number) => (height - 1 - (value / top) * (height - 2)).toFixed(1);
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => format(value, unit));
  const range = least === most ? `always ${least}` : `${least} to ${most}`;
  return html`<svg
      class="line"
      viewBox="0 0 ${width} ${height}"
      preserveAspectRatio="none"
      role="img"
      aria-label="Last ${time}: ${range}"
    >
      ${goal !== null && html`<path class="goal" d="M0 ${y(goal)}H${width}" />`}
      <path d="${path(points, x, y)}" />
    </svg>
    <p class="note">last ${time}: ${range}</p>`;
}
