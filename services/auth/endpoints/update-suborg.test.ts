import { afterAll, beforeAll, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { person, type IdentityFixture, startIdentityService } from '../testing/identity-fixture.ts';
import { decode } from '../testing/start-auth.ts';

const people = [person('ann', { suborgs: ['north', 'south'] })];
const params = { identity: 'identity' };
let scene: IdentityFixture;

beforeAll(async () => void (scene = await startIdentityService({ people })));
afterAll(() => scene.stop());

const choose = (token: string, suborg: string) =>
  call(scene.auth.origin, contract.updateSuborg, { params, token, body: { suborg } });

test('offers no suborgs to a session with a password', async () => {
  const { token } = await scene.auth.person();
  expect((await choose(token, 'north')).error?.error).toBe('suborg_not_allowed');
});

test('removes a withdrawn suborg at the next login, in older sessions too', async () => {
  const { access_token: older } = await scene.tokensOf('ann');
  people[0] = person('ann', { suborgs: ['north'] });
  const { access_token: token } = await scene.tokensOf('ann');
  expect(decode(token).claims).not.toHaveProperty('suborg');
  expect(await scene.me(token)).not.toHaveProperty('suborg');
  for (const session of [token, older]) {
    expect((await choose(session, 'south')).error?.error).toBe('suborg_not_allowed');
  }
  expect((await choose(older, 'north')).status).toBe(200);
  expect((await scene.events())[0]).toMatchObject({ event: 'suborg_changed', details: { suborg: 'north' } });
});
