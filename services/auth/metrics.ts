import { Counter } from 'prom-client';
import type { Metrics } from '@content-platform/chassis';

/** limited: 429 after too many failures. refused: 503 because of too many concurrent logins. */
const outcomes = ['success', 'failure', 'limited', 'refused'] as const;

export type Logins = Counter<'outcome'>;

/** Counts logins by outcome. */
export function createLogins({ registry }: Metrics): Logins {
  const logins = new Counter({
    name: 'logins_total',
    help: 'Logins with email and password',
    labelNames: ['outcome'],
    registers: [registry],
  });
  for (const outcome of outcomes) logins.inc({ outcome }, 0);
  return logins;
}
