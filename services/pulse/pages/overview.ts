import type { PulseReport } from '@content-platform/contract';
import type { Outcome } from '../failed-jobs.ts';
import type { Sample } from '../sampling/sampler.ts';
import * as cards from './cards.ts';
import { html, type Html } from './html.ts';
import { layout } from './layout.ts';
import { timeOfDay, stateMark } from './parts.ts';
import { targetTiles, verdict } from './targets.ts';

export interface Links {
  grafana?: string | undefined;
  jaeger?: string | undefined;
}

export interface Overview {
  report: PulseReport;
  samples: readonly Sample[];
  links: Links;
  mayRetry: boolean;
  /** The outcome of a job that was just retried. */
  retried?: { job: number; outcome: Outcome } | undefined;
}

const outcomes: Record<Outcome, string> = {
  done: 'was processed.',
  failed: 'failed again.',
  gone: 'was not found.',
  unavailable: 'could not be retried. Try again.',
};

export function overviewPage({ report, samples, links, mayRetry, retried }: Overview): Html {
  const { ok, text } = verdict(report);
  const outcome = retried && `Job ${retried.job} ${outcomes[retried.outcome]}`;
  const linked = Object.entries({ Grafana: links.grafana, Jaeger: links.jaeger }).filter(([, url]) => url);
  return layout({
    title: `${outcome ? `${outcome} ` : ''}${ok ? 'ok' : 'problem'} – Pulse`,
    live: true,
    aside: html`<p class="verdict" id="verdict" data-part role="status">${stateMark(ok, text, text)}</p>
      <nav aria-label="Other tools">${linked.map(([name, url]) => html`<a href="${url}">${name}</a> `)}</nav>
      <button id="pause" hidden>Pause</button>
      <form method="post" action="/pulse/sign-out"><button id="sign-out">Sign out</button></form>`,
    body: html`${outcome && html`<p class="card" role="status">${outcome}</p>`}
      <p class="problem" id="stale" role="alert" hidden>
        These figures are outdated, because the platform does not respond.
      </p>
      ${targetTiles(report, samples)} ${cards.alertsNotice(report)}
      <div class="cards">
        ${cards.routesCard(report)} ${cards.failedJobsCard(report, mayRetry)}
        ${cards.slowRequestsCard(report, links.jaeger)} ${cards.slowQueriesCard(report, links.jaeger)}
        ${cards.cacheCard(report)} ${cards.processesCard(report)}
      </div>
      <p class="note" id="at" data-part>
        Sampled at ${report.at === null ? '–' : timeOfDay(report.at)}; times are UTC.
      </p>`,
  });
}
