import { expect, test } from '@jest/globals';
import bcrypt from '@node-rs/bcrypt';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { keySecret, password, useAuth } from '../testing/start-auth.ts';
import { createClient, disableClient, rotateClient } from './clients.ts';
import type { Command } from './command.ts';
import { rotateKeySecret } from './keys.ts';
import { createUser, importUsers } from './users.ts';

const auth = useAuth();
const run = (command: Command, args: string[], input?: string | Buffer) => auth.run(command, args, input);

async function expectRefusal(line: RegExp, command: Command, args: string[], input?: string | Buffer) {
  const failure: unknown = await run(command, args, input).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(Error);
  expect((failure as Error).message).toMatch(line);
  expect((failure as Error).message).not.toContain('\n');
}

const ann = ['--email', 'ann@example.com', '--name', 'Ann'];
const unknownScope =
  /^--scope must be one of cache:clear, jobs:manage, pulse:view, letters:write, devices:manage, content:read, content:list, content:restricted$/;

test('create-user creates a user with the given roles, by default a regular user', async () => {
  const said = await run(createUser, [...ann, '--role', 'sre', '--role', 'admin'], `${password}\nmore\n`);
  expect(said).toMatch(/^Created user \d+, ann@example.com \(sre, admin\)\.$/);
  const user = (await auth.accounts.users.findByEmail('ann@example.com'))!;
  expect(user).toMatchObject({ name: 'Ann', roles: ['sre', 'admin'], disabled: false });
  expect(await auth.accounts.passwords.verify(user.passwordHash, password)).toBe(true);
  await run(createUser, ['--email', 'bob@example.com', '--name', 'Bob'], password);
  expect((await auth.accounts.users.findByEmail('bob@example.com'))!.roles).toEqual(['user']);
});

test('create-user refuses an email that is taken, in any case', async () => {
  const other = ['--email', 'BOB@example.com', '--name', 'B'];
  await expectRefusal(/^A user with the email BOB@/, createUser, other, password);
});

test.each<[RegExp, string[], string]>([
  [/^The password must have 15 to 128 characters; this has 11\.$/, ann, 'eleven char\n'],
  [/^The password must have 15 to 128 characters; this has 0\.$/, ann, '\n'],
  [/^The password must have no NUL in it$/, ann, `${password}\0\n`],
  [/^The password is too easy to guess\. It contains your name, /, ann, 'ann@example.com\n'],
  [/^Give the password as the first line of stdin/, ann, ''],
  [/^--role must be one of user, sre, admin$/, [...ann, '--role', 'root'], password],
  [/^--email must be an email address$/, ['--email', 'ann', '--name', 'Ann'], password],
  [/^--email must be an email address$/, ['--name', 'Ann'], password],
  [/^--name must have 1 to 200 visible characters$/, ['--email', 'a@b.de'], password],
])('create-user refuses: %s', (line, args, input) => expectRefusal(line, createUser, args, input));

test('create-user refuses a password of PASSWORD_BLOCKLIST_FILE', async () => {
  const file = join(temporaryFolder(), 'list');
  writeFileSync(file, password);
  process.env['PASSWORD_BLOCKLIST_FILE'] = file;
  const cid = ['--email', 'cid@example.com', '--name', 'Cid'];
  await expectRefusal(/^The password is too easy to guess\. It is on a list/, createUser, cid, password);
  delete process.env['PASSWORD_BLOCKLIST_FILE'];
});

test.each([
  ['', /^AUTH_KEY_SECRET_NEW is not set; /],
  ['short', /^AUTH_KEY_SECRET_NEW must be a secret of 32 or more characters, not what it is set to$/],
  [keySecret, /^AUTH_KEY_SECRET_NEW is the same as AUTH_KEY_SECRET\.$/],
])('rotate-key-secret refuses %j as the new secret', async (secret, line) => {
  Object.assign(process.env, { AUTH_KEY_SECRET: keySecret, AUTH_KEY_SECRET_NEW: secret });
  await expect(run(rotateKeySecret, [])).rejects.toThrow(line);
});

test('create-client shows a secret once and stores its hash', async () => {
  const args = ['cms', '--scope', 'cache:clear', '--scope', 'cache:clear'];
  const secret = (await run(createClient, args)).split('\n').at(-1)!;
  expect(secret).toMatch(/^[\w-]{43}$/);
  const client = (await auth.accounts.clients.find('cms'))!;
  expect(client.scopes).toEqual(['cache:clear']);
  expect(await auth.accounts.passwords.verify(client.secretHash, secret)).toBe(true);
  await expectRefusal(/^Client cms exists already/, createClient, args);
  expect((await auth.accounts.clients.find('cms'))!.secretHash).toBe(client.secretHash);
});

test.each([
  [/^NAME must be 1 to 64 lower-case letters/, ['CMS', '--scope', 'cache:clear']],
  [/^NAME must be 1 to 64 lower-case letters/, ['--scope', 'cache:clear']],
  [unknownScope, ['cms', '--scope', 'all']],
  [unknownScope, ['cms', '--scope', 'users:admin']],
  [unknownScope, ['cms']],
  [/^Give exactly one NAME/, ['cms', 'cms2', '--scope', 'cache:clear']],
])('create-client refuses: %s', (line, args) => expectRefusal(line, createClient, args));

test('disable-client disables a client permanently', async () => {
  await run(createClient, ['doomed', '--scope', 'cache:clear']);
  expect(await run(disableClient, ['doomed'])).toMatch(/^Disabled client doomed: /);
  const { disabled, secretHash } = (await auth.accounts.clients.find('doomed'))!;
  expect(disabled).toBe(true);
  for (const command of [disableClient, rotateClient])
    await expectRefusal(/^Client doomed was not found, or is disabled\.$/, command, ['doomed']);
  expect((await auth.accounts.clients.find('doomed'))!.secretHash).toBe(secretHash);
});

test.each([
  [/^Client unknown was not found, or is disabled\.$/, ['unknown']],
  [/^NAME must be 1 to 64 lower-case letters/, []],
  [/^NAME must be 1 to 64 lower-case letters/, ['CMS']],
  [/^Give exactly one NAME/, ['cms', 'cms2']],
])('rotate-client and disable-client refuse: %s', async (line, args) => {
  for (const command of [rotateClient, disableClient]) await expectRefusal(line, command, args);
});

test('import-users stores bcrypt and argon2id hashes unchanged', async () => {
  const laravel = await bcrypt.hash(password, { cost: 4, version: '2y' });
  const ours = await auth.accounts.passwords.hash(password);
  const one = { email: 'one@example.com', name: 'One', password_hash: laravel };
  const two = { email: 'two@example.com', name: 'Two', password_hash: ours, roles: ['sre'] };
  const said = await run(importUsers, [], `\n${JSON.stringify(one)}\r\n\n${JSON.stringify(two)}`);
  expect(said).toBe('Imported 2 users.');
  const stored = await Promise.all([one, two].map(({ email }) => auth.accounts.users.findByEmail(email)));
  expect(stored[0]).toMatchObject({ name: 'One', passwordHash: laravel, roles: ['user'] });
  expect(stored[1]).toMatchObject({ name: 'Two', passwordHash: ours, roles: ['sre'] });
});

const bcryptHash = '$2y$10$Ptlhrz/rrKZbLJhcrJZpAunCY5F2MukkfDARoEXSO0LWO60PQcxUS';
const good = { email: 'new@example.com', name: 'New', password_hash: bcryptHash };
const bad = { ...good, email: 'other@example.com' };

test.each([
  [/^Line 2: password_hash must be bcrypt/, { ...bad, password_hash: 'md5' }],
  [/^Line 2: email must be/, { ...bad, email: 'b' }],
  [/not valid for encoding utf-8/, { ...bad, name: 'Jürgen' }],
  [/^Line 2: roles must be one of/, { ...bad, roles: ['root'] }],
  [/^Line 2: Unrecognized key: "id"/, { ...bad, id: 1 }],
  [/^Line 2: a user with this email exists already/, { ...good, email: 'NEW@example.com' }],
  [/^Line 2: a user with this email exists already/, { ...good, email: 'ann@example.com' }],
  [/^Line 2: must be JSON/, undefined],
])('import-users imports all users or none: %s', async (line, second) => {
  const input = `${JSON.stringify(good)}\n${second ? JSON.stringify(second) : '{"email":'}\n`;
  await expectRefusal(line, importUsers, [], Buffer.from(input, 'latin1'));
  expect(await auth.accounts.users.findByEmail(good.email)).toBeUndefined();
});
