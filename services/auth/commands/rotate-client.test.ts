import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { decode, startAuth, type TestAuth } from '../testing/start-auth.ts';
import { rotateClient } from './rotate-client.ts';

let auth: TestAuth;
beforeAll(async () => void (auth = await startAuth()));
afterAll(() => auth.stop());

const issuedAt = (accessToken: string) => decode(accessToken).claims['iat'] as number;

test('revokes the old secret at once, but not the first token of the new secret', async () => {
  await auth.addClient('cms', 'old-secret', 'cache:clear');
  const before = (await auth.askAsClient('cms', 'old-secret')).body!;
  const said = await auth.run(rotateClient, ['cms']);
  const after = (await auth.askAsClient('cms', said.split('\n').at(-1)!)).body!;
  expect((await auth.askAsClient('cms', 'old-secret')).error?.error).toBe('invalid_client');

  const { revocations } = await auth.stores.revocations.listAfter(0);
  expect(revocations).toMatchObject([{ client: 'cms' }]);
  const { issued_until: until } = revocations[0] as { issued_until: number };
  expect(issuedAt(before.access_token)).toBeLessThanOrEqual(until);
  expect(issuedAt(after.access_token)).toBeGreaterThan(until);
});
