import { expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { admin } from '../../../test/support/admin.ts';
import { isAcceptedEverywhere, untilRefused } from '../../../test/support/revoked.ts';
import { stack } from '../../../test/support/stack.ts';

async function tokenFor(client_id: string, client_secret: string) {
  const body = { grant_type: 'client_credentials', client_id, client_secret };
  return call(stack().gateway, contract.token, { body });
}

test("rotation revokes the client's old secret and tokens; disabling also revokes the new ones", async () => {
  const name = `client-${randomBytes(6).toString('hex')}`;
  const first = await admin('create-client', name, '--scope', 'jobs:manage');
  const old = (await tokenFor(name, first)).body!.access_token;
  expect(await isAcceptedEverywhere(old)).toBe(true);

  const second = await admin('rotate-client', name);
  expect((await tokenFor(name, first)).error?.error).toBe('invalid_client');
  const renewed = (await tokenFor(name, second)).body!.access_token;
  await untilRefused(old);
  expect(await isAcceptedEverywhere(renewed)).toBe(true);

  await admin('disable-client', name);
  expect((await tokenFor(name, second)).error?.error).toBe('invalid_client');
  await untilRefused(renewed);
});
