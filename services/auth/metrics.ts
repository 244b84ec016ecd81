import { Counter } from 'prom-client';
import type { Metrics } from '@content-platform/chassis';

/** limited: 429 after too many failures. refused: 503 because of too many concurrent logins. */
const outcomes = ['success', 'failure', 'limited', 'refused'] as const;

/** The counters of this service. */
export type AuthMetrics = ReturnType<typeof createAuthMetrics>;

export type Logins = Counter<'outcome'>;

/** Creates the counters of this service. */
export function createAuthMetrics(metrics: Metrics) {
  return {
    logins: createLogins(metrics),
    /** Refresh tokens that were used after their replacement: a sign of theft. */
    reusedTokens: new Counter({
      name: 'refresh_tokens_reused_total',
      help: 'Refresh tokens that were used after their replacement, which ended their sessions',
      registers: [metrics.registry],
    }),
  };
}

/** Counts logins by outcome. */
function createLogins({ registry }: Metrics): Logins {
  const logins = new Counter({
    name: 'logins_total',
    help: 'Logins with email and password',
    labelNames: ['outcome'],
    registers: [registry],
  });
  for (const outcome of outcomes) logins.inc({ outcome }, 0);
  return logins;
}
