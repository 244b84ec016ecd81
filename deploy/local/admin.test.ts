import { spawn } from 'node:child_process';
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { bareEnvironment } from '../../test/support/processes.ts';
import { startProgram } from '../../test/support/programs.ts';
import { stack } from '../../test/support/stack.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';
import { until } from '../../test/support/wait.ts';
import { ROOT, stackFilePath } from './config.ts';
import { freeRow } from '../../test/support/ports.ts';
import { withAccounts } from '../../services/auth/accounts.ts';
import { unseal } from '../../services/auth/keys/sealing.ts';
import { mainOf, serviceSpec } from './service-process.ts';
import { internalPortOffset, serviceOf, services } from '@content-platform/contract';
import { openState, type Secrets, writePrivate } from './state.ts';

// Each test starts several processes, one after the other.
jest.setTimeout(180_000);

const other = 'the secret of another stack, long enough';
/** A stack whose auth service has run before and created its keys. */
let started: Awaited<ReturnType<typeof make>>;
/** A copy of this stack for each test. */
let own: typeof started;

async function make(origin?: { copyOf: TestDatabase }) {
  const state = openState(temporaryFolder(), '');
  const database = await createTestDatabase(origin);
  writePrivate(state.path('stack.json'), { postgres: database.url, services: {} });
  return { database, state };
}

beforeAll(async () => {
  started = await make();
  own = started;
  expect(await startAuth()).toMatchObject(endedWell);
});
beforeEach(async () => {
  own = await make({ copyOf: started.database });
  copyFileSync(started.state.path('secrets.json'), secretsFile());
});
afterEach(() => own.database.drop());
afterAll(() => started.database.drop());

const secretsFile = () => own.state.path('secrets.json');

const surroundings = () => ({ STACK_FILE: own.state.path('stack.json') });

function admin(command: string | string[], env: NodeJS.ProcessEnv = {}, input = '') {
  const settings = { args: [command].flat(), env: { ...surroundings(), ...env }, input };
  return startProgram('deploy/local/admin.ts', settings).ended;
}

const endedWell = { code: 0, stderr: '' };

/** Rejects unless the secret decrypts every key and secret in the database. */
const decryptAll = (secret: string) =>
  withAccounts(own.database.url, async ({ secrets }) => {
    for (const { sealed, context } of await secrets.listSealed()) await unseal(sealed, secret, context);
  });

/** Does what the launcher does before it starts the stack's auth service. */
async function prepareAuth() {
  const stores = {
    postgres: own.database.url,
    logs: '',
    redis: 'redis://127.0.0.1:1',
    kafka: '',
    media: '',
    secretsFile: secretsFile(),
  };
  const spec = serviceSpec(serviceOf('auth'), await freeRow(services.length), stores);
  await spec.prepare!();
  return spec;
}

/** Starts auth like the launcher, runs `work` and stops auth. Returns its exit code and stderr. */
async function startAuth(work: () => Promise<void> = () => Promise.resolve()) {
  const spec = await prepareAuth();
  const env = spec.env!();
  const { child, ended } = startProgram(mainOf(serviceOf('auth')), { env });
  const died = ended.then(() => true);
  await until('it is ready or ends', async () => (await Promise.race([spec.ready(), died])) ?? true);
  const internal = `http://127.0.0.1:${Number(env['PORT']) + internalPortOffset}`;
  writePrivate(own.state.path('stack.json'), {
    postgres: own.database.url,
    services: { auth: { internal } },
  });
  await work();
  child.kill(spec.stopSignal);
  return ended;
}

const keptSecrets = () => JSON.parse(readFileSync(secretsFile(), 'utf8')) as Secrets;

test('runs each command in its service, and help lists all commands', async () => {
  const args = ['create-user', '--email', 'ann@example.com', '--name', 'Ann'];
  expect(await admin(args, {}, 'wooden lantern drifts past nine\n')).toMatchObject({
    code: 0,
    stdout: 'Created user 1, ann@example.com (user).\n',
  });
  await startAuth(async () => {
    expect(await admin(['create-letter', 'ann@example.com', 'Two words', '--webform', '12'])).toEqual({
      ...endedWell,
      stdout: 'Created letter 1 of user 1: a draft with 1 webform.\n',
    });
  });
  const { code, stdout } = await admin('help', { STACK_FILE: '' });
  const sources = globSync(join(ROOT, 'services/*/admin.ts')).map((file) => readFileSync(file, 'utf8'));
  expect([code, sources.length]).toEqual([0, 3]);
  for (const [, name] of sources.join().matchAll(/'([a-z-]+)':/g)) expect(stdout).toContain(`\n  ${name}`);
  const nowhere = { STACK_FILE: own.state.path('nowhere.json') };
  expect((await admin('create-user', nowhere)).stderr).toMatch(/^No stack is running/);
  expect((await admin('constructor')).stderr).toBe(
    'admin: Unknown command constructor. Run help for a list.\n',
  );
});

test("uses the stack's database if DATABASE_URL names its server only", async () => {
  const DATABASE_URL = new URL(stack().postgres.replace(/\/platform$/, '/postgres')).href;
  const reset = await admin(['reset-mfa', 'user@example.com'], { DATABASE_URL, STACK_FILE: stackFilePath() });
  expect(reset.stderr).toBe('admin: User user@example.com has no second factor.\n');
});

const onLinux = process.platform === 'linux' ? test : test.skip;
onLinux('when memory runs out, the kernel ends a command before the service', async () => {
  const args = ['create-user', '--email', 'ann@example.com', '--name', 'Ann'];
  const env = { ...bareEnvironment, DATABASE_URL: own.database.url };
  const command = spawn(process.execPath, [join(ROOT, 'services/auth/admin.ts'), ...args], { env });
  const priority = () => readFileSync(`/proc/${command.pid}/oom_score_adj`, 'utf8');
  // The command waits for the password.
  const isRaised = until('the kernel would end it first', () => priority() === '1000\n');
  await isRaised.finally(() => command.kill());
});

test("rotate-keys uses the stack's secret, and refuses a rotation before the new key signs", async () => {
  const made =
    /^Created signing key (\S+)\. Every auth process publishes it within a second; no restart is needed\.$/m;
  const { code, stdout } = await admin('rotate-keys', { AUTH_KEY_SECRET: other });
  expect([code, stdout]).toEqual([0, expect.stringMatching(made)]);
  expect(await admin('rotate-keys')).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      `^admin: Key ${made.exec(stdout)![1]} signs from .* UTC; rotate again after that`,
    ),
  });
});

test('rotate-key-secret replaces the secret, and the stack starts with the new one', async () => {
  const before = keptSecrets();
  const { code, stdout } = await admin('rotate-key-secret');
  expect(code).toBe(0);
  expect(stdout).toContain(`which is in ${secretsFile()}.\nRestart the stack`);
  const { authKeySecret, ...others } = keptSecrets();
  expect({ ...others, authKeySecret: before.authKeySecret }).toEqual(before);
  expect(authKeySecret).toMatch(/^[\w-]{32}$/);
  expect(authKeySecret).not.toBe(before.authKeySecret);
  expect(stdout).not.toContain(authKeySecret);
  expect(await startAuth()).toMatchObject(endedWell);

  // If a run ends after encrypting everything but before recording it, the next run completes it.
  writeFileSync(secretsFile(), JSON.stringify({ ...before, nextAuthKeySecret: authKeySecret }));
  expect((await admin('rotate-key-secret')).code).toBe(0);
  expect(keptSecrets()).toEqual({ ...others, authKeySecret });
  await decryptAll(authKeySecret);
});

/** Starts a secret rotation that waits before it encrypts the keys. */
async function heldRotation() {
  const client = new pg.Client(own.database.url);
  await client.connect();
  const isThere = async (text: string) => (await client.query(text)).rowCount! > 0;
  await client.query(`SELECT pg_advisory_lock(hashtext('auth.signing_key'))`);
  const args = [join(ROOT, 'deploy/local/admin.ts'), 'rotate-key-secret'];
  // In a process group together with the command that it starts.
  const { pid } = spawn(process.execPath, args, {
    env: { ...bareEnvironment, ...surroundings() },
    detached: true,
    stdio: 'ignore',
  });
  const waiting = `SELECT FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()`;
  const rotation = {
    kill: (signal: NodeJS.Signals) => process.kill(pid!, signal),
    killWithCommand: () => process.kill(-pid!, 'SIGKILL'),
    goOn: () => client.query('SELECT pg_advisory_unlock_all()'),
    untilEncrypted: () =>
      until('the keys are encrypted', () =>
        isThere(`SELECT FROM auth.audit WHERE event = 'key_secret_rotated'`),
      ),
    close: () => client.end(),
  };
  await until('it waits', () => isThere(waiting));
  return rotation;
}
type HeldRotation = Awaited<ReturnType<typeof heldRotation>>;

/** Kills a rotation at different times, and prepares the next start of auth. */
const interruptions: Record<string, (rotation: HeldRotation) => Promise<unknown>> = {
  async 'before it has encrypted the keys'({ killWithCommand, goOn }) {
    killWithCommand();
    await goOn();
    return prepareAuth();
  },
  async 'while its command continues'({ kill, goOn }) {
    kill('SIGKILL');
    const prepared = prepareAuth();
    await goOn();
    return prepared;
  },
  async 'when it has encrypted the keys'({ kill, goOn, untilEncrypted }) {
    kill('SIGSTOP');
    await goOn();
    await untilEncrypted();
    kill('SIGKILL');
    return prepareAuth();
  },
};

test.each(Object.keys(interruptions))(
  'the next start completes a secret rotation that was killed %s',
  async (when) => {
    const before = keptSecrets();
    const rotation = await heldRotation();
    const { nextAuthKeySecret: noted } = keptSecrets();
    await interruptions[when]!(rotation);
    await rotation.close();
    expect(keptSecrets()).toEqual({ ...before, authKeySecret: noted });
    await decryptAll(noted!);
  },
);

test('a failed secret rotation does not change the stack', async () => {
  const before = keptSecrets();
  writeFileSync(secretsFile(), JSON.stringify({ ...before, authKeySecret: other }));
  expect(await admin('rotate-key-secret')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'admin: AUTH_KEY_SECRET does not decrypt the keys in the database; nothing was changed\n',
  });
  expect(keptSecrets()).toMatchObject({ ...before, authKeySecret: other });
  await decryptAll(before.authKeySecret);
});

test('for another database, reads the secrets from environment variables or files', async () => {
  const { authKeySecret } = keptSecrets();
  rmSync(own.state.path('stack.json'));
  const env = { DATABASE_URL: own.database.url };
  expect((await admin('rotate-keys', env)).stderr).toMatch(/^admin: AUTH_KEY_SECRET is not set; /);
  const given = { ...env, AUTH_KEY_SECRET: authKeySecret };
  const next = own.state.path('next');
  writeFileSync(next, `${other}\n`);
  const { code, stdout } = await admin('rotate-key-secret', { ...given, AUTH_KEY_SECRET_NEW_FILE: next });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Encrypted 3 keys and secrets with AUTH_KEY_SECRET_NEW\.\nSet AUTH_KEY_SECRET/);
  expect(keptSecrets().authKeySecret).toBe(authKeySecret);
  await expect(decryptAll(authKeySecret)).rejects.toThrow();
  await decryptAll(other);
});
