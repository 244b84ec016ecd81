import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { changePassword, jwks, login, me } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { freeRow } from '../../test/support/ports.ts';
import { bareEnvironment } from '../../test/support/processes.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';
import { until } from '../../test/support/wait.ts';
import { ensureUser, withAccounts } from './accounts.ts';
import { keySecret } from './testing/start-auth.ts';

const main = fileURLToPath(new URL('main.ts', import.meta.url));
const started = new Set<ChildProcess>();
let own: TestDatabase;

beforeAll(async () => {
  own = await createTestDatabase();
});
afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
});
afterAll(() => own.drop());

async function start(env: Record<string, string> = {}) {
  const port = await freeRow(1);
  const child = spawn(process.execPath, [main], {
    env: {
      ...bareEnvironment,
      PORT: String(port),
      DATABASE_URL: own.url,
      AUTH_KEY_SECRET: keySecret,
      ...env,
    },
  });
  started.add(child);
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  }
  const ended = once(child, 'close').then(([code]) => code as number);
  const origin = `http://127.0.0.1:${port}`;
  const internal = `http://127.0.0.1:${port + 1000}`;
  const ready = () => fetch(`${internal}/health/ready`).then((response) => response.status === 200);
  return { child, origin, internal, output, ended, ready };
}

test('two that start at once on an empty database sign with one key, and stop when told to', async () => {
  const both = await Promise.all([start(), start()]);
  for (const { ready } of both) await until('it is ready', ready);
  const sets = await Promise.all(both.map(({ origin }) => call(origin, jwks)));
  expect(sets[0]!.body!.keys).toHaveLength(1);
  expect(sets[1]!.body).toEqual(sets[0]!.body);

  const person = { email: 'ann@example.com', password: 'a-password-to-keep' };
  const ann = { ...person, name: 'Ann', roles: ['user' as const] };
  await withAccounts(own.url, (accounts) => ensureUser(accounts, ann));
  const { token } = (await call(both[0].origin, login, { body: person })).body!;
  expect((await call(both[1].origin, me, { token })).status).toBe(200);

  for (const { child, ended, output } of both) {
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(output.stderr).toBe('');
    for (const secret of [person.password, token, keySecret]) expect(output.stdout).not.toContain(secret);
  }
});

test('another AUTH_KEY_SECRET is one line and exit 1', async () => {
  const first = await start();
  await until('it has its key', first.ready);
  first.child.kill('SIGTERM');
  await first.ended;
  const { ended, output } = await start({ AUTH_KEY_SECRET: keySecret.toUpperCase() });
  expect(await ended).toBe(1);
  expect(output.stderr).toMatch(
    /^auth: AUTH_KEY_SECRET does not decrypt the signing key in the database; .+\n$/,
  );
});

test('a secret that is too short is one line and exit 1, and is not shown', async () => {
  const { ended, output } = await start({ AUTH_KEY_SECRET: 'too short' });
  expect(await ended).toBe(1);
  expect(output.stderr).toMatch(/^auth: AUTH_KEY_SECRET must be a secret of 32 or more characters, .+\n$/);
  expect(output.stderr).not.toContain('too short');
});

test('refuses listed passwords, and a list with an invalid line in one line and exit 1', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'blocklist-'));
  const PASSWORD_BLOCKLIST_FILE = join(folder, 'list');
  const listed = 'eleven quiet herons read maps';
  writeFileSync(PASSWORD_BLOCKLIST_FILE, `${hash('sha1', listed).toUpperCase()}:12\n`);
  const { origin, ready } = await start({ PASSWORD_BLOCKLIST_FILE });
  await until('it is ready', ready);
  const person = { email: 'bob@example.com', password: 'a-password-to-keep' };
  const bob = { ...person, name: 'Bob', roles: ['user' as const] };
  await withAccounts(own.url, (accounts) => ensureUser(accounts, bob));
  const { token } = (await call(origin, login, { body: person })).body!;
  const body = { current_password: person.password, new_password: listed };
  const { status, error } = await call(origin, changePassword, { body, token });
  expect([status, error?.details?.[0]?.message]).toEqual([422, expect.stringMatching(/common or leaked/)]);

  writeFileSync(PASSWORD_BLOCKLIST_FILE, 'first\nsecond\t\n');
  const { ended, output } = await start({ PASSWORD_BLOCKLIST_FILE });
  expect(await ended).toBe(1);
  expect(output.stderr).toBe(
    `auth: PASSWORD_BLOCKLIST_FILE: line 2 of ${PASSWORD_BLOCKLIST_FILE} contains a control character\n`,
  );
  rmSync(folder, { recursive: true });
});
