import { type Handler, HttpError, page } from '@content-platform/chassis';
import type * as contract from '@content-platform/contract';
import type { DeviceStore } from '../device-store.ts';

export interface DeviceDeps {
  devices: DeviceStore;
}

export function registerFcmToken({ devices }: DeviceDeps): Handler<typeof contract.registerFcmToken> {
  return async ({ caller, body, signal }) => {
    const device = await devices.register(caller.id, Number(caller.sessionId), body, signal());
    return { status: 200, body: { success: true, device } };
  };
}

export function listDevices({ devices }: DeviceDeps): Handler<typeof contract.listDevices> {
  return async ({ caller, query: { limit, cursor } }) => {
    const read = (rows: number) => devices.list(caller.id, cursor, rows);
    return { status: 200, body: await page(limit, read) };
  };
}

export function deleteDevice({ devices }: DeviceDeps): Handler<typeof contract.deleteDevice> {
  return async ({ caller, params: { id } }) => {
    // Another user's device gets the same reply as a device that does not exist.
    if (!(await devices.delete(caller.id, id))) throw new HttpError('not_found', `You have no device ${id}.`);
    return { status: 204 };
  };
}

export function listDeviceTokens({ devices }: DeviceDeps): Handler<typeof contract.listDeviceTokens> {
  return async ({ params: { id }, query: { limit, cursor } }) => {
    const read = (rows: number) => devices.listTokens(id, cursor, rows);
    const body = await page(limit, read, ({ token, platform, last_seen_at }) => ({
      token,
      platform,
      last_seen_at,
    }));
    return { status: 200, body };
  };
}

export function deviceFeedback({ devices }: DeviceDeps): Handler<typeof contract.deviceFeedback> {
  return async ({ body: { results } }) => {
    const feedback = results.map(({ token, outcome }) => ({ token, gone: outcome !== 'delivered' }));
    return { status: 200, body: await devices.applyFeedback(feedback) };
  };
}
