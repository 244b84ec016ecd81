import { randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { tokenOf } from './accounts.ts';
import { stack } from './stack.ts';

/** Returns a push token that no device has. */
export const newPushToken = (): string => `push-${randomUUID()}:${randomUUID()}`;

/** Registers a device for the user of the access token. Throws if the platform refuses. */
export async function register(token: string, body: contract.BodyInput<typeof contract.registerFcmToken>) {
  const answer = await call(stack().gateway, contract.registerFcmToken, { body, token });
  if (answer.error) throw new Error(`${answer.status} ${answer.error.error}`);
  return answer.body.device;
}

/** Returns a user's push tokens, newest first, as the message sender sees them. */
export async function pushTokensOf(userId: number): Promise<string[]> {
  const { gateway } = stack();
  const token = await tokenOf(gateway, 'admin');
  const params = { id: userId };
  const answer = await call(gateway, contract.listDeviceTokens, { params, query: { limit: 100 }, token });
  if (answer.error) throw new Error(`${answer.status} ${answer.error.error}`);
  return answer.body.items.map((item) => item.token);
}
