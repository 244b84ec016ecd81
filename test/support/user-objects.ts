import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newAddress, type OwnUser } from './accounts.ts';
import { newPushToken, register } from './devices.ts';
import { newLetter } from './letters.ts';
import { newImage, uploaded } from './media.ts';
import { stack } from './stack.ts';

async function newSession({ email, password, token }: OwnUser): Promise<string> {
  const { gateway } = stack();
  const headers = { 'X-Forwarded-For': newAddress() };
  await call(gateway, contract.login, { body: { email, password }, headers });
  const { body } = await call(gateway, contract.listSessions, { token });
  return String(body!.items.find(({ current }) => !current)!.id);
}

/**
 * Creates data of a user in every service that stores such data, and returns the id of the object. Tests of rights,
 * exports and erasure use all of them. The key is the path of the objects: with `/:id`, it is the path of one object.
 */
export const userObjects: Record<string, (user: OwnUser) => Promise<string | number>> = {
  '/api/sessions': newSession,
  '/api/devices': async ({ token }) => (await register(token, { token: newPushToken(), platform: 'ios' })).id,
  '/api/letters': ({ id }) => newLetter({ userId: id }),
  '/api/media': async ({ token }) => (await uploaded(token, await newImage())).id,
};
