import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startProgram } from '../../test/support/programs.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';
import { openAccounts } from './accounts.ts';

let own: TestDatabase;

beforeAll(async () => {
  own = await createTestDatabase();
});
afterAll(() => own.drop());

const run = (args: string[], { input = '', url = own.url } = {}) =>
  startProgram('services/auth/admin.ts', { args, input, env: { DATABASE_URL: url } }).ended;

test('a command creates the schema, reads stdin and prints its result', async () => {
  const args = ['create-user', '--email', 'ann@example.com', '--name', 'Ann', '--role', 'admin'];
  const { code, stdout } = await run(args, { input: 'wooden lantern drifts past nine\nanother line\n' });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Created user 1, ann@example.com (admin).\n' });
  const accounts = await openAccounts(own.url);
  const user = (await accounts.users.findByEmail('ann@example.com'))!;
  expect(await accounts.passwords.verify(user.passwordHash, 'wooden lantern drifts past nine')).toBe(true);
  await accounts.close();
});

test.each<[RegExp, string[], string?]>([
  [/^admin: Unknown command constructor\. Run help for a list\.\n$/, ['constructor']],
  [/^admin: Unknown option '--password'.*\n$/, ['create-user', '--password', 'x']],
  [/^admin: The database is unavailable\. Retry later\.\n$/, ['import-users'], 'postgres://u@127.0.0.1:1/x'],
  [/^admin: DATABASE_URL is not set; .+\n$/, ['import-users'], ''],
])('fails with one line and exit code 1: %s', async (line, args, url = own.url) => {
  const { code, stdout, stderr } = await run(args, { url });
  expect(stderr).toMatch(line);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
});

test('prints help without a database', async () => {
  const { code, stdout } = await run([], { url: '' });
  expect(code).toBe(0);
  for (const name of ['create-user', 'create-client', 'import-users']) expect(stdout).toContain(name);
});
