import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import bcrypt from '@node-rs/bcrypt';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';
import { openAccounts, type Accounts } from './accounts.ts';

const admin = fileURLToPath(new URL('admin.ts', import.meta.url));
const password = 'twelve chars';
let own: TestDatabase;
let accounts: Accounts;

beforeAll(async () => {
  own = await createTestDatabase();
});
afterAll(async () => {
  await accounts?.close();
  await own.drop();
});

interface Options {
  input?: string;
  url?: string;
}

async function run(args: string[], { input = '', url = own.url }: Options = {}) {
  const child = spawn(process.execPath, [admin, ...args], { env: { DATABASE_URL: url } });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  }
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number];
  return { code, ...output };
}

/** Refused with one line on stderr that matches. */
async function expectRefusal(line: RegExp, args: string[], options?: Options) {
  const { code, stdout, stderr } = await run(args, options);
  expect(stderr.trimEnd()).not.toContain('\n');
  expect(stderr).toMatch(line);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
}

const ann = ['create-user', '--email', 'ann@example.com', '--name', 'Ann'];

test('create-user makes the schema and a user who can log in', async () => {
  const input = `${password}\nanother line\n`;
  const { code, stdout } = await run([...ann, '--role', 'sre', '--role', 'admin'], { input });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Created user 1, ann@example.com (sre, admin).\n' });
  accounts = await openAccounts(own.url);
  const user = (await accounts.users.findByEmail('ann@example.com'))!;
  expect(user).toMatchObject({ id: 1, name: 'Ann', roles: ['sre', 'admin'], disabled: false });
  expect(await accounts.passwords.verify(user.passwordHash, password)).toBe(true);
});

test('an address that is taken is refused, in any case', () =>
  expectRefusal(
    /^admin: There is a user with the address ANN@/,
    ['create-user', '--email', 'ANN@example.com', '--name', 'A'],
    {
      input: `${password}\n`,
    },
  ));

test.each<[RegExp, string[], string]>([
  [/password must have 12 to 128 characters/, ann, 'eleven char\n'],
  [/password must have 12 to 128 characters/, ann, `${'x'.repeat(129)}\n`],
  [/password must have 12 to 128 characters/, ann, '\n'],
  [/Give the password as the first line of stdin/, ann, ''],
  [/--role must be of user, sre, admin/, [...ann, '--role', 'root'], password],
  [/--email must be an email address/, ['create-user', '--email', 'ann', '--name', 'Ann'], password],
  [/--email must be an email address/, ['create-user', '--name', 'Ann'], password],
  [/--name must have 1 to 200 characters/, ['create-user', '--email', 'a@b.de'], password],
  [/Unknown option '--password'/, [...ann, '--password', 'x'], password],
  [/There is no command delete-everything; try help/, ['delete-everything'], ''],
  [/There is no command constructor/, ['constructor'], ''],
  [/NAME must be 1 to 64 lower-case letters/, ['create-client', 'CMS', '--scope', 'cache:clear'], ''],
  [/--scope must be of cache:clear, jobs:manage/, ['create-client', 'cms', '--scope', 'all'], ''],
  [/--scope must be of cache:clear, jobs:manage/, ['create-client', 'cms'], ''],
  [/Give one NAME, not 2/, ['create-client', 'cms', 'cms2', '--scope', 'cache:clear'], ''],
])('refused with one line: %s', (line, args, input) => expectRefusal(line, args, { input }));

test('create-client prints a secret once and stores its hash', async () => {
  const args = ['create-client', 'cms', '--scope', 'cache:clear'];
  const { code, stdout } = await run(args);
  expect(code).toBe(0);
  const secret = stdout.trimEnd().split('\n').at(-1)!;
  expect(secret).toMatch(/^[\w-]{43}$/);
  const client = (await accounts.clients.find('cms'))!;
  expect(client.scopes).toEqual(['cache:clear']);
  expect(await accounts.passwords.verify(client.secretHash, secret)).toBe(true);
  await expectRefusal(/There is a client named cms already/, args);
  expect((await accounts.clients.find('cms'))!.secretHash).toBe(client.secretHash);
});

test('import-users takes bcrypt and argon2id hashes as they are', async () => {
  const [laravel, ours] = [
    await bcrypt.hash(password, { cost: 4, version: '2y' }),
    await accounts.passwords.hash(password),
  ];
  const users = [
    { email: 'one@example.com', name: 'One', password_hash: laravel },
    { email: 'two@example.com', name: 'Two', password_hash: ours, roles: ['sre'] },
  ];
  const { code, stdout } = await run(['import-users'], {
    input: `\n${users.map((user) => JSON.stringify(user)).join('\r\n\n')}`,
  });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Imported 2 users.\n' });
  expect(await accounts.users.findByEmail('one@example.com')).toMatchObject({
    passwordHash: laravel,
    roles: ['user'],
  });
  expect(await accounts.users.findByEmail('two@example.com')).toMatchObject({
    passwordHash: ours,
    roles: ['sre'],
  });
});

const good = {
  email: 'new@example.com',
  name: 'New',
  password_hash: '$2y$10$Ptlhrz/rrKZbLJhcrJZpAunCY5F2MukkfDARoEXSO0LWO60PQcxUS',
};

test.each([
  [/^admin: Line 2: password_hash must be bcrypt/, { ...good, email: 'b@b.de', password_hash: 'md5' }],
  [/^admin: Line 2: email must be/, { ...good, email: 'b' }],
  [/^admin: Line 2: roles must be of/, { ...good, email: 'b@b.de', roles: ['root'] }],
  [/^admin: Line 2: Unrecognized key: "id"/, { ...good, email: 'b@b.de', id: 1 }],
  [/^admin: Line 2: there is a user with this address already/, { ...good, email: 'NEW@example.com' }],
  [/^admin: Line 2: there is a user with this address already/, { ...good, email: 'ann@example.com' }],
  [/^admin: Line 2: must be JSON/, undefined],
])('import-users takes all or none: %s', async (line, second) => {
  const input = `${JSON.stringify(good)}\n${second ? JSON.stringify(second) : '{"email":'}\n`;
  await expectRefusal(line, ['import-users'], { input });
  expect(await accounts.users.findByEmail(good.email)).toBeUndefined();
});

test('a database that does not answer is one line, soon', () =>
  expectRefusal(/^admin: The database does not answer/, ['import-users'], {
    url: 'postgres://u@127.0.0.1:1/x',
  }));

test('help says what there is', async () => {
  for (const args of [[], ['help']]) {
    const { code, stdout } = await run(args, { url: '' });
    expect(code).toBe(0);
    for (const name of ['create-user', 'create-client', 'import-users']) expect(stdout).toContain(name);
  }
});
