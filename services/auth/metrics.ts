import { Counter } from 'prom-client';
import type { Metrics } from '@content-platform/chassis';

/** limited: after too many failures, 429. refused: too many were logging in, 503. */
const outcomes = ['success', 'failure', 'limited', 'refused'] as const;

export type Logins = Counter<'outcome'>;

/** Counts logins by how they ended. */
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
