import { authorize, type Handler } from '@content-platform/chassis';
import { pulseRetry as contract } from '@content-platform/contract';
import type { PulseContext } from '../context.ts';
import { withPages } from '../pages/send.ts';

export function pulseRetry({ viewers, failedJobs, checkOrigin }: PulseContext): Handler<typeof contract> {
  return withPages<typeof contract>(contract, async (call) => {
    checkOrigin(call.header);
    const { caller, token } = await viewers(call);
    authorize(caller, { access: 'jobs:manage' });
    const { id } = call.params;
    const outcome = await failedJobs.retry(id, token);
    return { status: 303, headers: { Location: `/pulse?job=${id}&outcome=${outcome}` } };
  });
}
