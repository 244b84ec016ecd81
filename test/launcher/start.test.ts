import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { call } from '@content-platform/contract/client';
import { internalPortOffset, portOf, readContent, services } from '@content-platform/contract';
import { ROOT } from '../../deploy/local/config.ts';
import { freeRow } from '../support/ports.ts';
import { onPath } from '../../deploy/local/run-command.ts';
import { emails, logIn, password as demoPassword } from '../support/accounts.ts';
import { withDatabase } from '../support/connections.ts';
import { createBrowser } from '../support/identity.ts';
import { until } from '../support/wait.ts';
import {
  alive,
  cleanUp,
  launch,
  type Launcher,
  launcherPid,
  limitMs,
  newState,
  npmStart,
  processesOf,
  stackOf,
  startCommand,
} from './launcher.ts';
import { collector, testTraces } from './traces.ts';

// Twice, because a test may wait for two things, one after the other.
jest.setTimeout(2 * limitMs);

// The tests start one stack twice; each continues where the previous test stopped.
const state = newState();
const password = 'chosen by: "us/\'';
let env: Record<string, string>;
let launcher: Launcher;

/** Returns a PATH without Java, which disables Kafka. */
function pathWithoutJava(): string {
  const folder = join(state, 'bin');
  mkdirSync(folder);
  for (const program of ['id', 'setpriv', 'redis-server', 'valkey-server']) {
    const file = onPath(program);
    if (file) symlinkSync(file, join(folder, program));
  }
  return folder;
}

function contentServer(...args: string[]): string {
  const stack = { ...process.env, STACK_FILE: join(state, 'stack.json') };
  return execFileSync(process.execPath, ['deploy/local/content-server.ts', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    env: stack,
    timeout: limitMs,
  });
}

/** Kills a process of the stack and waits for its replacement. */
async function killAndWait(name: string): Promise<void> {
  const before = processesOf(state)[name]!;
  const seen = launcher.output().length;
  process.kill(before.pid, 'SIGKILL');
  const isBack = new RegExp(`${name} is back`);
  await until(`${name} is back`, () => isBack.test(launcher.output().slice(seen)), limitMs);
  expect(processesOf(state)[name]?.pid).not.toBe(before.pid);
}

/** The services plus PostgreSQL, Redis, Kafka and the identity provider, whose port is nine above the gateway's. */
const processCount = services.length + 4;
const rowLength = 10;

beforeAll(async () => {
  env = {
    ...collector.environment,
    STATE_DIR: state,
    GATEWAY_PORT: String(await freeRow(rowLength)),
    IDENTITY_DEMO: '1',
    CONTENT_SERVER_PASSWORD: password,
  };
  launcher = launch(npmStart, env);
  await launcher.printed(/^Ready after/m);
});

afterAll(async () => {
  await cleanUp(state, launcher);
  collector.stop();
});

test('runs the smoke test once and prints what it read', () => {
  const output = launcher.output();
  const steps = [
    /login +\d+ ms {3}user@example.com/,
    /read webform 12 +\d+ ms {3}miss, version \d+/,
    /read it again +\d+ ms {3}hit, version \d+/,
    /edit by HTTP: cleared in +\d+ ms/,
    /read: the new version +\d+ ms {3}miss, version \d+, "Edited by HTTP/,
    /edit through Kafka: cleared in +\d+ ms/,
    /read: the new version +\d+ ms {3}(miss|hit), version \d+, "Edited through Kafka/,
  ];
  let from = 0;
  for (const step of steps) {
    const found = step.exec(output.slice(from));
    expect(found ?? `no ${step} in:\n${output}`).toHaveProperty('index');
    from += found?.index ?? 0;
  }
});

test('stack.json contains every URL and is readable by its owner only', () => {
  const port = Number(env.GATEWAY_PORT);
  const { services: addresses, ...rest } = stackOf(state);
  expect(rest).toEqual({
    gateway: `http://127.0.0.1:${port}`,
    postgres: expect.stringMatching(/^postgres:\/\/platform:\S+@127\.0\.0\.1:\d+\/platform$/),
    logs: expect.stringMatching(/^postgres:\/\/platform:\S+@127\.0\.0\.1:\d+\/logs$/),
    redis: expect.stringMatching(/^redis:\/\/default:\S+@127\.0\.0\.1:\d+$/),
    kafka: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
  });
  for (const { name, port: usual } of services)
    expect(addresses[name]).toEqual({
      public: `http://127.0.0.1:${port + usual - portOf('gateway')}`,
      internal: `http://127.0.0.1:${port + usual - portOf('gateway') + internalPortOffset}`,
      pid: processesOf(state)[name]?.pid,
    });
  expect(statSync(state).mode & 0o777).toBe(0o700);
  // Java reads the path of its data from a file.
  expect(existsSync(join(state, 'kafka/data/meta.properties'))).toBe(true);
  for (const file of ['stack.json', 'secrets.json', 'content-server.json'])
    expect(statSync(join(state, file)).mode & 0o777).toBe(0o600);
});

test('prints where the password of content_server is, which CONTENT_SERVER_PASSWORD sets', async () => {
  const file = /^Content server +(.+content-server\.json) /m.exec(launcher.output())?.[1] ?? '';
  const { database } = JSON.parse(readFileSync(file, 'utf8')) as { database: string };
  const url = Object.assign(new URL(database), { username: 'content_server', password });
  const { rows } = await withDatabase(url.href, (client) =>
    client.query('SELECT id FROM content.webform WHERE id = 12'),
  );
  expect(rows).toEqual([{ id: '12' }]);
});

test('the printed commands work unchanged', () => {
  const printed = /To try.*:\n\n((?: {2}.*\n)+)/.exec(launcher.output())?.[1] ?? '';
  expect(printed.trim().split('\n')).toHaveLength(5);
  const script = `set -e\n${printed}`;
  const options = { cwd: ROOT, encoding: 'utf8', timeout: limitMs } as const;
  const { status, stdout, stderr } = spawnSync('bash', ['-c', script], options);
  expect({ status, stderr, stdout }).toMatchObject({ status: 0 });
  expect(stdout.match(/^HTTP\/1\.1 200/gm)).toHaveLength(2);
  expect(stdout).toMatch(
    /updated webform 12 \(version \d+, "Hello"\): cleared by HTTP, \d+ keys? deleted in \d+ ms/,
  );
  expect(stdout).toMatch(
    /updated webform 12 \(version \d+, "Hello again"\): announced through Kafka in \d+ ms/,
  );
  expect(stdout).toMatch(/"title":"Edited through Kafka/);
});

test('the printed login at the identity provider works unchanged', async () => {
  const output = launcher.output();
  const address = /^ {2}(http\S+\/login\?\S+)$/m.exec(output)?.[1] ?? '';
  const browser = createBrowser();
  const there = (await browser.go(address)).headers.get('location')!;
  const back = await browser.logInThere(new URL(there), 'uma');
  const end = new URL((await browser.go(back)).headers.get('location')!);
  const code = end.searchParams.get('code')!;
  expect(await (await browser.go(end)).text()).toContain(code);
  const command = /^ {2}(curl .*code=)CODE$/m.exec(output)?.[1] + code;
  const reply = execFileSync('bash', ['-c', command], { encoding: 'utf8', timeout: limitMs });
  expect(reply).toMatch(/^{"access_token":"eyJ/);
});

describe('traces', () => testTraces(state));

test('a second start reports that the stack already runs, and where', async () => {
  const second = launch(startCommand, env);
  expect(await second.ended).toBe(1);
  expect(second.output()).toMatch(new RegExp(`already running: ${stackOf(state).gateway} `));
  expect(alive(processesOf(state))).toHaveLength(processCount);
});

test('a port in use makes another start fail before anything starts', async () => {
  const other = newState();
  const second = launch(startCommand, { ...env, STATE_DIR: other });
  try {
    expect(await second.ended).toBe(1);
    expect(second.output()).toMatch(
      new RegExp(`Port ${env.GATEWAY_PORT}, which gateway needs, is taken: .*GATEWAY_PORT`),
    );
    expect(second.output()).not.toMatch(/PostgreSQL/);
  } finally {
    await cleanUp(other, second);
  }
});

test('restarts a service and a store that die, and updates the pids in stack.json', async () => {
  for (const name of ['content-cache', 'postgres']) await killAndWait(name);
  expect(stackOf(state).services['content-cache']?.pid).toBe(processesOf(state)['content-cache']?.pid);
  const edit = ['edit', 'webform', '13', '--title', 'Kept', '--via', 'kafka'];
  const said = await until('an event is sent', () => contentServer(...edit), limitMs);
  expect(said).toMatch(/announced through Kafka/);
});

test('after kill -9 a start stops leftover processes, keeps edited data and runs without Kafka', async () => {
  const disable = ['run', 'admin', '--', 'disable-client', 'content-server'];
  const stack = { ...process.env, STACK_FILE: join(state, 'stack.json') };
  execFileSync('npm', disable, { cwd: ROOT, env: stack, timeout: limitMs });
  const left = processesOf(state);
  process.kill(launcherPid(state), 'SIGKILL');
  expect(await launcher.ended).not.toBe(0);
  launcher = launch(startCommand, { ...env, CI: '', PATH: pathWithoutJava(), JAVA_HOME: '' });
  await launcher.printed(/^Ready after/m);
  expect(launcher.output()).toMatch(/Stopped \d+ processes that a killed run had left/);
  expect(launcher.output()).toMatch(
    /Kafka .* unavailable \(there is no Java 17 or newer\); invalidation works by HTTP only/,
  );
  // A changed demo account does not prevent the start.
  expect(launcher.output()).toMatch(/The client content-server was changed .* the smoke test is skipped/);
  expect(alive(left)).toEqual([]);
  expect(alive(processesOf(state))).toHaveLength(processCount - 1);
  expect(stackOf(state).kafka).toBeNull();
  expect(processesOf(state)).not.toHaveProperty('kafka');
  const { gateway } = stackOf(state);
  const { token } = await logIn(emails.user, demoPassword, gateway);
  const { body } = await call(gateway, readContent, { params: { model: 'webform', id: 13 }, token });
  expect(body).toMatchObject({ title: 'Kept' });
});

test('Ctrl-C stops everything and exits 0', async () => {
  const processes = processesOf(state);
  launcher.interrupt();
  expect(await launcher.ended).toBe(0);
  expect(alive(processes)).toEqual([]);
  expect(alive(processesOf(state))).toEqual([]);
  expect(existsSync(join(state, 'stack.json'))).toBe(false);
});
