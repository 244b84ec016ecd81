import { authorize, HttpError, type Handler } from '@content-platform/chassis';
import * as contract from '@content-platform/contract';
import { clientHeadersOf } from '../access/viewers.ts';
import type { PulseContext } from '../context.ts';
import { overviewPage } from '../pages/overview.ts';
import { isBrowser, page, withPages } from '../pages/send.ts';
import { makeReport } from '../report.ts';

export function pulse({ viewers, links, sources }: PulseContext): Handler<typeof contract.pulse> {
  return withPages<typeof contract.pulse>(contract.pulse, async (call) => {
    const viewer = await viewers(call);
    const report = await makeReport(sources, viewer);
    if (!isBrowser(call.header)) return { status: 200, body: report, headers: { Vary: 'Accept' } };
    const { job, outcome } = call.query;
    const content = overviewPage({
      report,
      samples: sources.sampler.samples(),
      links,
      mayRetry: viewer.caller.scopes.has('jobs:manage'),
      retried: job !== undefined && outcome !== undefined ? { job, outcome } : undefined,
    });
    return page(200, content);
  });
}

export function pulseSignIn(context: PulseContext): Handler<typeof contract.pulseSignIn> {
  const { auth, tokens, sessions, cookie, checkOrigin } = context;
  return withPages<typeof contract.pulseSignIn>(contract.pulseSignIn, async (call) => {
    checkOrigin(call.header);
    const from = clientHeadersOf(call);
    const login = await auth.logIn(call.body, from);
    try {
      if (login.mustChangePassword) {
        throw new HttpError(
          'password_change_required',
          'This temporary password was valid for one login only. Request another one, log in to the platform with it and choose your own password. Then sign in here.',
        );
      }
      authorize(await tokens.verify(login.accessToken), { access: 'pulse:view' });
    } catch (refusal) {
      // The session would never be used.
      await auth.logOut(login.accessToken, from);
      throw refusal;
    }
    sessions.end(cookie.read(call.header('cookie'))); // a login replaces the browser's session (ASVS 5.0 7.2.4)
    return { status: 303, headers: { Location: '/pulse', 'Set-Cookie': cookie.set(sessions.open(login)) } };
  });
}

export function pulseSignOut(context: PulseContext): Handler<typeof contract.pulseSignOut> {
  const { auth, sessions, cookie, checkOrigin } = context;
  return withPages<typeof contract.pulseSignOut>(contract.pulseSignOut, async (call) => {
    checkOrigin(call.header);
    const value = cookie.read(call.header('cookie'));
    const from = clientHeadersOf(call);
    const token = value && (await sessions.tokenOf(value, from).catch(() => undefined));
    if (token) await auth.logOut(token, from);
    sessions.end(value);
    return { status: 303, headers: { Location: '/pulse', 'Set-Cookie': cookie.clear() } };
  });
}

export function pulseRetry(context: PulseContext): Handler<typeof contract.pulseRetry> {
  const { viewers, failedJobs, checkOrigin } = context;
  return withPages<typeof contract.pulseRetry>(contract.pulseRetry, async (call) => {
    checkOrigin(call.header);
    const { caller, token } = await viewers(call);
    authorize(caller, { access: 'jobs:manage' });
    const { id } = call.params;
    const outcome = await failedJobs.retry(id, token);
    return { status: 303, headers: { Location: `/pulse?job=${id}&outcome=${outcome}` } };
  });
}
