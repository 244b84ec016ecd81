import type { Handler } from '@content-platform/chassis';
import type { deviceFeedback as contract } from '@content-platform/contract';
import type { DeviceStore } from '../device-store.ts';

export function deviceFeedback({ devices }: { devices: DeviceStore }): Handler<typeof contract> {
  return async ({ body: { results } }) => {
    const feedback = results.map(({ token, outcome }) => ({ token, gone: outcome !== 'delivered' }));
    return { status: 200, body: await devices.applyFeedback(feedback) };
  };
}
