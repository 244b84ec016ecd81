import { expect, test } from '@jest/globals';
import { useStarted } from '../../test/support/use-started.ts';
import { openTestAccounts } from './testing/open-test-accounts.ts';

// In this locale, I and \u0130 have other lower-case letters, and so does the Kelvin sign.
const kelvin = '\u212a';
const accounts = useStarted(() => openTestAccounts({ locale: 'tr' }));

const create = async (email: string) =>
  (await accounts.users.create({ email, name: 'A Person', passwordHash: null, roles: ['user'] }))?.id;

test('in every locale emails are equal regardless of the case of A to Z, and of no other letter', async () => {
  const kim = await create('Kim@Example.com');
  for (const email of ['kim@example.com', 'KIM@EXAMPLE.COM']) {
    expect(await create(email)).toBeUndefined();
    expect(await accounts.users.findByEmail(email)).toMatchObject({ id: kim });
    const { account, user } = await accounts.users.lookUp(email);
    expect([account, user?.id]).toEqual(['email:kim@example.com', kim]);
  }
  for (const email of [`${kelvin}im@example.com`, 'k\u0130m@example.com', 'k\u0131m@example.com']) {
    expect(await accounts.users.findByEmail(email)).toBeUndefined();
    expect(await accounts.users.lookUp(email)).toEqual({ account: `email:${email}`, user: undefined });
    const id = await create(email);
    expect(id).not.toBe(kim);
    expect(await accounts.users.findByEmail(email)).toMatchObject({ id });
  }
});
