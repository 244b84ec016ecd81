import * as contract from '@content-platform/contract';
import { createService, handle, type ServiceOptions } from '@content-platform/chassis';
import { alertReceivers } from './alertmanager.ts';
import { createAuthClient } from './access/auth-client.ts';
import { createCookie, createOriginCheck } from './access/cookie.ts';
import { createSessions } from './access/sessions.ts';
import { createViewers } from './access/viewers.ts';
import { readAssets, pulseAsset } from './endpoints/pulse-asset.ts';
import type { PulseContext } from './context.ts';
import { pulse, pulseRetry, pulseSignIn, pulseSignOut } from './endpoints/pulse.ts';
import { createFailedJobs } from './failed-jobs.ts';
import { optionalPart } from './optional-part.ts';
import type { Links } from './pages/overview.ts';
import type { Sampler } from './sampling/sampler.ts';
import type { SlowLogStore } from './slow-log-store.ts';

interface PulseOptions extends Omit<ServiceOptions, 'name'> {
  publicUrl: string;
  authUrl: string;
  contentCacheUrl: string;
  /** undefined: /pulse does not show whether alerts have a receiver. */
  alertmanagerUrl: string | undefined;
  links: Links;
  sampler: Sampler;
  /** undefined: there is no logs database. */
  slowLog: SlowLogStore | undefined;
}

const none = () => Promise.resolve(null);

export function createPulse(options: PulseOptions) {
  const { publicUrl, alertmanagerUrl, links, sampler, slowLog, tokens, logger, metrics } = options;
  const auth = createAuthClient(options.authUrl);
  const failedJobs = createFailedJobs(options.contentCacheUrl);
  const slow = slowLog ? optionalPart(() => slowLog.newest()) : none;
  const jobs = optionalPart((token: string) => failedJobs.groups(token));
  const receivers = alertmanagerUrl ? optionalPart(() => alertReceivers(alertmanagerUrl)) : none;
  const sessions = createSessions(auth);
  const cookie = createCookie(publicUrl);
  const context: PulseContext = {
    auth,
    tokens,
    sessions,
    cookie,
    viewers: createViewers(tokens, sessions, cookie),
    checkOrigin: createOriginCheck(publicUrl),
    failedJobs,
    report: { sampler, slow, jobs, receivers },
    links,
  };
  return createService({ name: 'pulse', logger, metrics, tokens }, [
    handle(contract.pulse, pulse(context)),
    handle(contract.pulseSignIn, pulseSignIn(context)),
    handle(contract.pulseSignOut, pulseSignOut(context)),
    handle(contract.pulseRetry, pulseRetry(context)),
    handle(contract.pulseAsset, pulseAsset({ assets: readAssets() })),
  ]);
}
