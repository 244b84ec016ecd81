import type { Handler } from '@content-platform/chassis';
import { pulse as contract } from '@content-platform/contract';
import type { PulseContext } from '../context.ts';
import { overviewPage } from '../pages/overview.ts';
import { isBrowser, page, withPages } from '../pages/send.ts';
import { makeReport } from '../report.ts';

export function pulse({ viewers, links, report: deps }: PulseContext): Handler<typeof contract> {
  return withPages<typeof contract>(contract, async (call) => {
    const viewer = await viewers(call);
    const report = await makeReport(deps, viewer);
    if (!isBrowser(call.header)) return { status: 200, body: report, headers: { Vary: 'Accept' } };
    const { job, outcome } = call.query;
    const content = overviewPage({
      report,
      samples: deps.sampler.samples(),
      links,
      mayRetry: viewer.caller.scopes.has('jobs:manage'),
      retried: job !== undefined && outcome !== undefined ? { job, outcome } : undefined,
    });
    return page(200, content);
  });
}
