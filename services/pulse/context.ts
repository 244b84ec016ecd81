import type { TokenVerifier } from '@content-platform/chassis';
import type { AuthClient } from './access/auth-client.ts';
import type { Cookie, createOriginCheck } from './access/cookie.ts';
import type { Sessions } from './access/sessions.ts';
import type { Viewers } from './access/viewers.ts';
import type { createFailedJobs } from './failed-jobs.ts';
import type { Links } from './pages/overview.ts';
import type { ReportDeps } from './report.ts';

export interface PulseContext {
  auth: AuthClient;
  tokens: TokenVerifier;
  sessions: Sessions;
  cookie: Cookie;
  viewers: Viewers;
  checkOrigin: ReturnType<typeof createOriginCheck>;
  failedJobs: ReturnType<typeof createFailedJobs>;
  report: ReportDeps;
  links: Links;
}
