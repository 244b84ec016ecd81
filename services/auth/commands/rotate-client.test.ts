import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Readable, Writable } from 'node:stream';
import { token } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { withAccounts } from '../accounts.ts';
import { decode, startAuth, type TestAuth } from '../testing.ts';
import { rotateClient } from './rotate-client.ts';

let auth: TestAuth;
beforeAll(async () => void (auth = await startAuth()));
afterAll(() => auth.stop());

const ask = (client_secret: string) =>
  call(auth.origin, token, {
    body: { grant_type: 'client_credentials', client_id: 'cms', client_secret },
  });
const issuedAt = (accessToken: string) => decode(accessToken).claims['iat'] as number;

test('the old secret is of no use at once, the first token for the new one is not revoked with the old ones', async () => {
  await auth.addClient('cms', 'old-secret', 'cache:clear');
  const before = (await ask('old-secret')).body!;
  const said = await rotateClient(['cms'], {
    input: Readable.from([]),
    prompts: new Writable(),
    withAccounts: (work) => withAccounts(auth.databaseUrl, work),
  });
  const after = (await ask(said.split('\n').at(-1)!)).body!;
  expect((await ask('old-secret')).error?.error).toBe('invalid_client');

  const { revocations } = await auth.stores.revocations.listAfter(0);
  expect(revocations).toMatchObject([{ client: 'cms' }]);
  const { issued_until: until } = revocations[0] as { issued_until: number };
  expect(issuedAt(before.access_token)).toBeLessThanOrEqual(until);
  expect(issuedAt(after.access_token)).toBeGreaterThan(until);
});
