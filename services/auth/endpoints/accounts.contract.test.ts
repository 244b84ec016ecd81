import { expect, test } from '@jest/globals';
import { jwks, me } from '@content-platform/contract';
import { emails } from '../../../test/support/accounts.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

describeEndpoint(me, {}, ({ ask }) => {
  test.each(['user', 'sre', 'admin'] as const)('returns the email and roles of %s', async (as) => {
    expect(await ask({ as })).toMatchObject({ status: 200, body: { email: emails[as], roles: [as] } });
  });
});

describeEndpoint(jwks, {}, ({ ask }) => {
  test('publishes only public keys', async () => {
    const answer = await ask();
    expect(answer.status).toBe(200);
    // The contract allows public parameters alone. A modulus of 3,072 bits has 512 characters.
    expect(answer.body?.keys[0]).toMatchObject({ n: expect.stringMatching(/^[\w-]{512}$/) });
    expect(answer.headers.get('cache-control')).toBe('public, max-age=300');
  });
});
