import { expect, test } from '@jest/globals';
import { createTestDatabase } from '../../test/support/test-database.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { withAccounts } from './accounts.ts';

// In this locale, I and \u0130 have other lower-case letters, and so does the Kelvin sign.
const database = useStarted(() => createTestDatabase({ locale: 'tr' }));

test('in every locale emails are equal regardless of the case of A to Z, and of no other letter', () =>
  withAccounts(database.url, async ({ users }) => {
    const create = async (email: string) =>
      (await users.create({ email, name: 'A Person', passwordHash: null, roles: ['user'] }))?.id;
    const kim = await create('Kim@Example.com');
    for (const email of ['kim@example.com', 'KIM@EXAMPLE.COM']) {
      expect(await create(email)).toBeUndefined();
      expect(await users.findByEmail(email)).toMatchObject({ id: kim });
      const { account, user } = await users.lookUp(email);
      expect([account, user?.id]).toEqual(['email:kim@example.com', kim]);
    }
    for (const email of ['\u212aim@example.com', 'k\u0130m@example.com', 'k\u0131m@example.com']) {
      expect(await users.findByEmail(email)).toBeUndefined();
      expect(await users.lookUp(email)).toEqual({ account: `email:${email}`, user: undefined });
      const id = await create(email);
      expect(id).not.toBe(kim);
      expect(await users.findByEmail(email)).toMatchObject({ id });
    }
  }));
