import { expect, test } from '@jest/globals';
import { openDatabase } from '@content-platform/chassis';
import { startHttpServer } from '../../test/support/http-server.ts';
import { startProgram } from '../../test/support/programs.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { createLetter } from './commands/create-letter.ts';
import { useLetters } from './testing/letters.ts';
import { createFindUser } from './users.ts';

const letters = useLetters();
const users: Record<string, number> = {
  '/users?email=ann%40EXAMPLE.com': 1,
  '/users?id=1': 1,
  '/users?email=%C3%A9%40example.com': 2,
};
/** Replaces auth's internal listener; returns the ids in `users`. */
const auth = useStarted(() =>
  startHttpServer(({ url = '' }, response) => {
    if (url === '/service-token') return void response.end('{"token":"x","expires_in":900}');
    const id = users[url];
    response.writeHead(id === undefined ? 404 : 200).end(id === undefined ? '' : JSON.stringify({ id }));
  }),
);

/** Runs the command in this process. */
function create(args: string[], databaseUrl = letters.databaseUrl, authUrl = auth.origin) {
  return createLetter(args, {
    open: () => openDatabase('letters', databaseUrl),
    findUser: createFindUser(authUrl, fetch),
  });
}

/** Runs the command as a process, as `npm run admin` does. */
const run = (args: string[], env: { DATABASE_URL: string; AUTH_INTERNAL_URL: string }) =>
  startProgram('services/letters/admin.ts', { args, env }).ended;

test.each(['ann@EXAMPLE.com', '1'])('creates a letter for %s', async (whom) => {
  const created = await create([whom, 'Before your visit', '--webform', '12:required', '--webform', '7']);
  const [, id] = /^Created letter (\d+) of user 1: a draft with 2 webforms\.$/.exec(created)!;
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
  expect(await create(['\u00e9@example.com', 'Title'])).toMatch(/ of user 2: a draft with 0 webforms\.$/);
});

test.each([
  [/^User 3 was not found\.$/, ['3', 'Title']],
  [/^User bob@example\.com was not found\.$/, ['bob@example.com', 'Title']],
  [/^Give EMAIL-or-USER-ID and TITLE; /, ['1']],
  [/^Give EMAIL-or-USER-ID and TITLE; /, ['1', 'Two', 'words']],
  [/^TITLE must have 1 to 200 visible characters\.$/, ['1', '']],
  [/^TITLE must have/, ['1', 'A\u001b[31m letter']],
  [/^TITLE must have/, ['1', 'x'.repeat(201)]],
  [/^--webform must be .+, not 0\.$/, ['1', 'Title', '--webform', '0']],
  [/^--webform must be .+, not 1:optional\.$/, ['1', 'T', '--webform', '1:optional']],
  [/^--webform must be /, ['1', 'Title', '--webform', '9007199254740992']],
  [/^A webform is listed twice\.$/, ['1', 'Title', '--webform', '1', '--webform', '1:required']],
  [/^Unknown option '--state'/, ['1', 'Title', '--state', 'open']],
])('fails with %s before it opens the database', async (message, args) => {
  await expect(create(args, 'postgres://u@127.0.0.1:1/x')).rejects.toThrow(message);
});

test('says which of its stores is unavailable', async () => {
  const withoutDatabase = create(['1', 'Title'], 'postgres://u@127.0.0.1:1/x');
  await expect(withoutDatabase).rejects.toThrow(/^The database is unavailable/);
  const withoutAuth = create(['1', 'Title'], letters.databaseUrl, 'http://127.0.0.1:1');
  await expect(withoutAuth).rejects.toThrow(/^The auth service is unavailable/);
});

test('as a process: prints one line with exit code 1 for a missing setting', async () => {
  const env = { DATABASE_URL: letters.databaseUrl, AUTH_INTERNAL_URL: auth.origin };
  for (const missing of ['DATABASE_URL', 'AUTH_INTERNAL_URL']) {
    const failed = await run(['create-letter', '1', 'Title'], { ...env, [missing]: '' });
    const stderr = expect.stringMatching(new RegExp(`^admin: ${missing} is not set; .+\\n$`));
    expect(failed).toEqual({ code: 1, stdout: '', stderr });
  }
});
