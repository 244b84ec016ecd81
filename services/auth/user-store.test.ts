import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';
import { type Accounts, openAccounts } from './accounts.ts';

// In this locale, I and \u0130 have other lower-case letters, and so does the Kelvin sign.
const kelvin = '\u212a';
let own: TestDatabase;
let accounts: Accounts;

beforeAll(async () => {
  own = await createTestDatabase({ locale: 'tr' });
  accounts = await openAccounts(own.url);
});
afterAll(async () => {
  await accounts.close();
  await own.drop();
});

const create = async (email: string) =>
  (await accounts.users.create({ email, name: 'A Person', passwordHash: null, roles: ['user'] }))?.id;

test('in every locale emails are equal regardless of the case of A to Z, and of no other letter', async () => {
  const kim = await create('Kim@Example.com');
  for (const email of ['kim@example.com', 'KIM@EXAMPLE.COM']) {
    expect(await create(email)).toBeUndefined();
    expect(await accounts.users.findByEmail(email)).toMatchObject({ id: kim });
    const { account, user } = await accounts.users.lookUp(email);
    expect([account, user?.id]).toEqual(['kim@example.com', kim]);
  }
  for (const email of [`${kelvin}im@example.com`, 'k\u0130m@example.com', 'k\u0131m@example.com']) {
    expect(await accounts.users.findByEmail(email)).toBeUndefined();
    expect(await accounts.users.lookUp(email)).toEqual({ account: email, user: undefined });
    const id = await create(email);
    expect(id).not.toBe(kim);
    expect(await accounts.users.findByEmail(email)).toMatchObject({ id });
  }
});
