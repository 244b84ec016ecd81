import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startHttpServer, type HttpServer } from '../../test/support/http-server.ts';
import { bareEnvironment } from '../../test/support/processes.ts';
import { createLetter } from './commands/create-letter.ts';
import { startLetters, type TestLetters } from './testing.ts';
import { createFindUser } from './users.ts';

const admin = fileURLToPath(new URL('admin.ts', import.meta.url));
let letters: TestLetters;

/** The users that the stand-in for auth's internal listener finds. */
const users: Record<string, number> = {
  '/users?email=ann%40EXAMPLE.com': 1,
  '/users?id=1': 1,
  '/users?email=%C3%A9%40example.com': 2,
};
const asked: string[] = [];
let auth: HttpServer;

beforeAll(async () => {
  letters = await startLetters();
  auth = await startHttpServer(({ url = '' }, response) => {
    asked.push(url);
    const id = users[url];
    response.writeHead(id === undefined ? 404 : 200).end(id === undefined ? '' : JSON.stringify({ id }));
  });
});
afterAll(async () => {
  auth.close();
  await letters.stop();
});

async function run(args: string[], env: { DATABASE_URL?: string; AUTH_INTERNAL_URL?: string } = {}) {
  const own = { DATABASE_URL: letters.databaseUrl, AUTH_INTERNAL_URL: auth.origin };
  const child = spawn(process.execPath, [admin, ...args], { env: { ...bareEnvironment, ...own, ...env } });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  }
  const [code] = (await once(child, 'close')) as [number];
  return { code, ...output };
}

test.each(['ann@EXAMPLE.com', '1'])('creates a letter for %s', async (whom) => {
  const args = ['create-letter', whom, 'Before your visit', '--webform', '12:required', '--webform', '7'];
  const { code, stdout, stderr } = await run(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [, id] = /^Created letter (\d+) of user 1: a draft with 2 webforms\.\n$/.exec(stdout)!;
  const { letter } = await letters.read(Number(id));
  expect(letter).toMatchObject({
    user_id: 1,
    title: 'Before your visit',
    state: 'draft',
    webforms: [
      { webform_id: 7, required: false, skipped: false },
      { webform_id: 12, required: true, skipped: false },
    ],
  });
  expect(await letters.history(letter.id)).toMatchObject([{ event: 'created', actor: 'command' }]);
});

test('auth decides which user has an email', async () => {
  expect((await run(['create-letter', '\u00e9@example.com', 'Title'])).stdout).toMatch(/ of user 2: /);
  expect(asked.at(-1)).toBe('/users?email=%C3%A9%40example.com');
});

test('creates a letter without webforms', async () => {
  const { stdout } = await run(['create-letter', '1', 'Short']);
  expect(stdout).toMatch(/a draft with 0 webforms\.\n$/);
});

test.each([
  [/^There is no user 3\.$/, ['3', 'Title']],
  [/^There is no user bob@example\.com\.$/, ['bob@example.com', 'Title']],
  [/^Give EMAIL-or-USER-ID and TITLE; /, ['1']],
  [/^Give EMAIL-or-USER-ID and TITLE; /, ['1', 'Two', 'words']],
  [/^TITLE must have 1 to 200 characters, and none that cannot be seen\.$/, ['1', '']],
  [/^TITLE must have/, ['1', 'A\u001b[31m letter']],
  [/^TITLE must have/, ['1', 'x'.repeat(201)]],
  [/^--webform must be .+, not 0\.$/, ['1', 'Title', '--webform', '0']],
  [/^--webform must be .+, not 1:optional\.$/, ['1', 'T', '--webform', '1:optional']],
  [/^--webform must be /, ['1', 'Title', '--webform', '9007199254740992']],
  [/^A webform is named twice\.$/, ['1', 'Title', '--webform', '1', '--webform', '1:required']],
  [/^Unknown option '--state'/, ['1', 'Title', '--state', 'open']],
])('create-letter fails with %s and opens no database', async (message, args) => {
  const open = () => Promise.reject(new Error('the database was opened'));
  await expect(createLetter(args, { open, findUser: createFindUser(auth.origin) })).rejects.toThrow(message);
});

test.each<[RegExp, string, Parameters<typeof run>[1]?]>([
  [/^admin: There is no command constructor; try help\.\n$/, 'constructor'],
  [/^admin: The database does not .+\n$/, 'create-letter', { DATABASE_URL: 'postgres://u@127.0.0.1:1/x' }],
  [/^admin: The auth service does not .+\n$/, 'create-letter', { AUTH_INTERNAL_URL: 'http://127.0.0.1:1' }],
  [/^admin: DATABASE_URL is not set; .+\n$/, 'create-letter', { DATABASE_URL: '' }],
  [/^admin: AUTH_INTERNAL_URL is not set; .+\n$/, 'create-letter', { AUTH_INTERNAL_URL: '' }],
])('an error is one line and exit code 1: %s', async (line, command, env = {}) => {
  const { code, stdout, stderr } = await run([command, '1', 'Title'], env);
  expect(stderr).toMatch(line);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
});

test('help needs no database', async () => {
  const { code, stdout } = await run([], { DATABASE_URL: '', AUTH_INTERNAL_URL: '' });
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('create-letter') });
});
