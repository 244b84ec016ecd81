import type { Metrics } from '@content-platform/chassis';

/** limited: 429 after too many failures. refused: 503, too many concurrent logins. `mfa_required` is not counted. */
const outcomes = ['success', 'failure', 'limited', 'refused'] as const;

/** failed: another attempt follows. abandoned: none follows. */
const mailOutcomes = ['sent', 'failed', 'abandoned'] as const;

export type Mails = ReturnType<typeof createMailMetrics>;

export function createMailMetrics({ counter }: Metrics) {
  const mails = counter('mails_total', 'Attempts to send a mail', 'outcome');
  for (const outcome of mailOutcomes) mails.inc({ outcome }, 0);
  return mails;
}

export function createAuthMetrics({ counter }: Metrics) {
  const logins = counter('logins_total', 'Logins at /api/login and /api/login/mfa', 'outcome');
  for (const outcome of outcomes) logins.inc({ outcome }, 0);
  /** A sign of theft. */
  const reusedTokens = counter(
    'refresh_tokens_reused_total',
    'Refresh tokens that were used after their replacement, which ended their sessions',
  );
  return { logins, reusedTokens };
}
