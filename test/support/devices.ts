import { randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { accepted, tokenOf } from './accounts.ts';
import { stack } from './stack.ts';

export const newPushToken = (): string => `push-${randomUUID()}:${randomUUID()}`;

/** Registers a device for the user of the access token. Throws if the platform refuses. */
export async function register(token: string, body: contract.BodyInput<typeof contract.registerFcmToken>) {
  return (await accepted(call(stack().gateway, contract.registerFcmToken, { body, token }))).body.device;
}

/** Returns a user's push tokens, newest first, as the message sender sees them. */
export async function pushTokensOf(userId: number): Promise<string[]> {
  const { gateway } = stack();
  const token = await tokenOf(gateway, 'admin');
  const options = { params: { id: userId }, query: { limit: 100 }, token };
  const { body } = await accepted(call(gateway, contract.listDeviceTokens, options));
  return body.items.map((item) => item.token);
}
