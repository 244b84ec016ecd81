import { createBreaker, type Logger, type TokenVerifier } from '@content-platform/chassis';
import { createAuthClient } from './access/auth-client.ts';
import { createCookie, createOriginCheck } from './access/cookie.ts';
import { createSessions } from './access/sessions.ts';
import { createViewers } from './access/viewers.ts';
import { alertReceivers } from './alertmanager.ts';
import { createFailedJobs } from './failed-jobs.ts';
import { optionalPart } from './optional-part.ts';
import type { Links } from './pages/overview.ts';
import type { Sampler } from './sampling/sampler.ts';
import type { SlowLogStore } from './slow-log-store.ts';

export interface PulseDeps {
  publicUrl: string;
  authUrl: string;
  contentCacheUrl: string;
  /** undefined: /pulse does not show whether alerts have a receiver. */
  alertmanagerUrl: string | undefined;
  links: Links;
  sampler: Sampler;
  /** undefined: there is no logs database. */
  slowLog: SlowLogStore | undefined;
  tokens: TokenVerifier;
  logger: Logger;
}

export type PulseContext = ReturnType<typeof createContext>;

/** Creates the dependencies of the endpoints. */
export function createContext(deps: PulseDeps) {
  const { publicUrl, alertmanagerUrl, links, sampler, slowLog, tokens, logger } = deps;
  const breaker = (part: string) => createBreaker(logger, `reading failed; /pulse does not show ${part}`);
  const auth = createAuthClient(deps.authUrl);
  const failedJobs = createFailedJobs(deps.contentCacheUrl);
  const sessions = createSessions(auth);
  const cookie = createCookie(publicUrl);
  return {
    auth,
    tokens,
    sessions,
    cookie,
    viewers: createViewers(tokens, sessions, cookie),
    checkOrigin: createOriginCheck(publicUrl),
    failedJobs,
    /** Read the parts of a report, null for an unavailable part. `jobs` reads with the viewer's token. */
    sources: {
      sampler,
      slow: optionalPart(breaker('slow requests'), async () => slowLog?.newest() ?? null),
      jobs: optionalPart(breaker('failed jobs'), (token: string) => failedJobs.groups(token)),
      receivers: optionalPart(breaker('receivers of alerts'), async () =>
        alertmanagerUrl ? alertReceivers(alertmanagerUrl) : null,
      ),
    },
    links,
  };
}
