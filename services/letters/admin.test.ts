import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '../../test/support/processes.ts';
import { startLetters, type TestLetters } from './testing.ts';

const admin = fileURLToPath(new URL('admin.ts', import.meta.url));
let letters: TestLetters;

beforeAll(async () => {
  letters = await startLetters();
  // What the command needs to see of the auth service's schema.
  await letters.database.query('test', 'CREATE SCHEMA auth');
  await letters.database.query('test', 'CREATE TABLE auth.user (id bigint, email text)');
  await letters.database.query('test', `INSERT INTO auth.user VALUES (1, 'Ann@example.com'), (2, '3')`);
});
afterAll(() => letters.stop());

async function run(args: string[], url = letters.databaseUrl) {
  const child = spawn(process.execPath, [admin, ...args], {
    env: { ...bareEnvironment, DATABASE_URL: url },
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  }
  const [code] = (await once(child, 'close')) as [number];
  return { code, ...output };
}

test.each(['ann@EXAMPLE.com', '1'])('a letter for %s', async (whom) => {
  const args = ['create-letter', whom, 'Before your visit', '--webform', '12:required', '--webform', '7'];
  const { code, stdout, stderr } = await run(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [, id] = /^Created letter (\d+) of user 1, Ann@example.com: a draft with 2 webforms\.\n$/.exec(
    stdout,
  )!;
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

test('one without webforms', async () => {
  const { stdout } = await run(['create-letter', '1', 'Short']);
  expect(stdout).toMatch(/a draft with 0 webforms\.\n$/);
});

test.each<[RegExp, string[], string?]>([
  [/^admin: There is no command constructor; try help\.\n$/, ['constructor']],
  [/^admin: Give EMAIL-or-USER-ID and TITLE; /, ['create-letter', '1']],
  [/^admin: Give EMAIL-or-USER-ID and TITLE; /, ['create-letter', '1', 'Two', 'words']],
  [
    /^admin: TITLE must have 1 to 200 characters, and none that cannot be seen\.\n$/,
    ['create-letter', '1', ''],
  ],
  [/^admin: TITLE must have/, ['create-letter', '1', 'A\u001b[31m letter']],
  [
    /^admin: TITLE must have 1 to 200 characters, and none that cannot be seen\.\n$/,
    ['create-letter', '1', 'x'.repeat(201)],
  ],
  [/^admin: There is no user 3\.\n$/, ['create-letter', '3', 'Title']],
  [/^admin: There is no user bob@example\.com\.\n$/, ['create-letter', 'bob@example.com', 'Title']],
  [/^admin: --webform must be .+, not 0\.\n$/, ['create-letter', '1', 'Title', '--webform', '0']],
  [
    /^admin: --webform must be .+, not 1:optional\.\n$/,
    ['create-letter', '1', 'T', '--webform', '1:optional'],
  ],
  [/^admin: --webform must be /, ['create-letter', '1', 'Title', '--webform', '9007199254740992']],
  [
    /^admin: A webform is named twice\.\n$/,
    ['create-letter', '1', 'Title', '--webform', '1', '--webform', '1:required'],
  ],
  [/^admin: Unknown option '--state'.*\n$/, ['create-letter', '1', 'Title', '--state', 'open']],
  [
    /^admin: The database does not answer at the moment\.\n$/,
    ['create-letter', '1', 'Title'],
    'postgres://u@127.0.0.1:1/x',
  ],
  [/^admin: DATABASE_URL is not set; .+\n$/, ['create-letter', '1', 'Title'], ''],
])('what cannot be done is one line and exit 1: %s', async (line, args, url = letters.databaseUrl) => {
  const { code, stdout, stderr } = await run(args, url);
  expect(stderr).toMatch(line);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
});

test('help needs no database', async () => {
  const { code, stdout } = await run([], '');
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('create-letter') });
});
