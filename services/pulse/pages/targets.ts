import type { PulseReport, Target } from '@content-platform/contract';
import type { Sample } from '../sampling/sampler.ts';
import { format } from './format.ts';
import { html, type Html } from './html.ts';
import { stateMark } from './parts.ts';
import { sparkline } from './sparkline.ts';

/** The texts of each target; `idle`: the text while there is too little data. */
const texts: Record<Target['name'], { title: string; note: string; idle: string }> = {
  response_time_p95: {
    title: 'Response time',
    note: '95 % of requests, last 5 minutes',
    idle: 'fewer than 20 requests',
  },
  invalidation_queue: { title: 'Invalidation queue', note: 'events and refused clears that wait', idle: '' },
  failed_jobs: { title: 'Failed jobs', note: 'open', idle: '' },
  hit_ratio: { title: 'Cache hits', note: 'of reads, last 5 minutes', idle: 'fewer than 100 reads' },
  cache_memory: { title: 'Cache memory', note: 'of the memory limit', idle: '' },
};
const words = { below: 'under', above: 'over', equal: '' } as const;

function goalOf({ goal, comparison, unit }: Target): string {
  return goal === null ? 'no limit is set' : `target: ${words[comparison]} ${format(goal, unit)}`;
}

function tile(target: Target, samples: readonly Sample[], now: number): Html {
  const { name, value, unit, ok, note } = target;
  const { title, note: about, idle } = texts[name];
  const points = samples.map(({ at, values }) => ({ at, value: values.get(name) ?? null }));
  const shown = value === null ? (ok ? '–' : '?') : format(value, unit);
  return html`<section
    class="card target ${ok ? 'is-ok' : 'is-missed'}"
    id="${name}"
    data-part
    aria-labelledby="${name}-heading"
  >
    <h2 id="${name}-heading">${title}</h2>
    <p class="value">${shown}</p>
    <p>
      ${value === null && !ok ? stateMark(false, '', 'unknown') : stateMark(ok)}${value === null && ok && html` <span class="note">${idle}</span>`}
    </p>
    <p class="note">${note ?? about}; ${goalOf(target)}</p>
    ${sparkline(points, target, now)}
  </section>`;
}

/** Renders the targets, each with a line of the last hour. */
export function targetTiles({ targets }: PulseReport, samples: readonly Sample[]): Html {
  const now = samples.at(-1)?.at ?? 0;
  return html`<div class="tiles">${targets.map((target) => tile(target, samples, now))}</div>`;
}

export function verdict({ targets, processes, at }: PulseReport): { ok: boolean; text: string } {
  if (at === null) return { ok: false, text: 'waiting for the first measurement' };
  const missed = targets.filter(({ ok }) => !ok).map(({ name }) => texts[name].title.toLowerCase());
  const down = processes.filter(({ up }) => !up).map(({ service, address }) => service ?? address);
  const lead = down.length > 0 ? `down: ${down.join(', ')}; ` : '';
  if (missed.length === 0) return { ok: !lead, text: `${lead}all targets are met` };
  return { ok: false, text: `${lead}${missed.length} of ${targets.length} missed: ${missed.join(', ')}` };
}
