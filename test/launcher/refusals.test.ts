import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ROOT } from '../../deploy/local/config.ts';
import { freeRow } from '../../deploy/local/ports.ts';
import { onPath } from '../../deploy/local/run-command.ts';
import { SERVICES } from '../../deploy/local/services.ts';
import { alive, cleanUp, launch, type Launcher, LIMIT_MS, newState, processesOf } from './launcher.ts';

const startCommand = [process.execPath, 'deploy/local/bootstrap.mjs', 'deploy/local/start.ts'];
let state: string;
let env: Record<string, string>;
let launcher: Launcher | undefined;

beforeEach(async () => {
  state = newState();
  env = { STATE_DIR: state, GATEWAY_PORT: String(await freeRow(SERVICES.length)), CI: '' };
});
afterEach(() => cleanUp(state, launcher), LIMIT_MS);

/** A PATH with these programs and no other. */
function pathWith(...programs: string[]): string {
  const folder = join(state, 'bin');
  mkdirSync(folder);
  for (const program of programs) {
    const file = onPath(program);
    if (file) symlinkSync(file, join(folder, program));
  }
  return folder;
}

async function refused(changed: Record<string, string>, line: RegExp): Promise<void> {
  launcher = launch(startCommand, { ...env, ...changed });
  expect(await launcher.ended).toBe(1);
  expect(launcher.output().trimEnd().split('\n').at(-1)).toMatch(line);
  expect(alive(processesOf(state))).toEqual([]);
}

test(
  'a folder that cannot be written to',
  async () => {
    const file = join(state, 'file');
    writeFileSync(file, '');
    await refused({ STATE_DIR: join(file, 'below') }, /^Cannot write to .*below \(ENOTDIR\): make it/);
  },
  LIMIT_MS,
);

test(
  'a data folder of another PostgreSQL',
  async () => {
    mkdirSync(join(state, 'postgres'));
    const secrets = { postgresPassword: 'a', authKeySecret: 'b', contentServerPassword: 'c' };
    writeFileSync(join(state, 'secrets.json'), JSON.stringify(secrets));
    writeFileSync(join(state, 'postgres', 'PG_VERSION'), '15\n');
    await refused({}, /made by PostgreSQL 15, this is 18\.\d+: move the folder away/);
    expect(readFileSync(join(state, 'postgres', 'PG_VERSION'), 'utf8')).toBe('15\n');
  },
  LIMIT_MS,
);

test(
  'no Redis to be had',
  async () => {
    await refused({ PATH: pathWith('id', 'setpriv') }, /^There is no Redis: install redis-server/);
  },
  LIMIT_MS,
);

test(
  'no Kafka, where nothing may be missing',
  async () => {
    const path = pathWith('id', 'setpriv', 'redis-server', 'valkey-server');
    await refused({ PATH: path, CI: 'true', JAVA_HOME: '' }, /^There is no Kafka: .*KAFKA_BROKERS/);
  },
  LIMIT_MS,
);

test(
  'servers that were named and do not answer',
  async () => {
    await refused({ REDIS_URL: 'redis://127.0.0.1:1' }, /^REDIS_URL: no Redis answers at 127\.0\.0\.1:1 /);
    await refused({ KAFKA_BROKERS: '127.0.0.1:1' }, /^KAFKA_BROKERS: nothing listens at 127\.0\.0\.1:1\./);
    await refused(
      { DATABASE_URL: 'postgres://a@127.0.0.1:1/platform' },
      /^PostgreSQL at 127\.0\.0\.1:1 refuses: /,
    );
  },
  LIMIT_MS,
);

test(
  'a port that is none',
  async () => {
    await refused({ GATEWAY_PORT: '80 80' }, /^GATEWAY_PORT is "80 80": give a port/);
  },
  LIMIT_MS,
);

test(
  'addresses that are none, and a database on another machine, before anything is started',
  async () => {
    const nothingBefore = (): void => expect(launcher?.output().trimEnd().split('\n')).toHaveLength(1);
    await refused({ DATABASE_URL: 'foo' }, /^DATABASE_URL is no address: /);
    nothingBefore();
    await refused({ REDIS_URL: 'foo' }, /^REDIS_URL is no address: /);
    nothingBefore();
    await refused(
      { DATABASE_URL: 'postgres://owner@db.example.com/platform' },
      /^DATABASE_URL names db\.example\.com: npm start adds demo accounts/,
    );
    nothingBefore();
  },
  LIMIT_MS,
);

test(
  'admin commands need a stack, their help does not',
  async () => {
    const admin = async (command: string): Promise<string> => {
      launcher = launch(
        [process.execPath, 'deploy/local/bootstrap.mjs', 'deploy/local/admin.ts', command],
        env,
      );
      return `${await launcher.ended}: ${launcher.output()}`;
    };
    expect(await admin('help')).toMatch(/^0: Usage:/);
    expect(await admin('nonsense')).toMatch(/^1: admin: There is no command nonsense/);
    expect(await admin('create-user')).toMatch(/^1: No stack is running/);
  },
  LIMIT_MS,
);

test('an old Node is told so before anything else', () => {
  const script = `Object.defineProperty(process.versions, 'node', { value: '18.20.0' });
    await import(${JSON.stringify(join(ROOT, 'deploy/local/bootstrap.mjs'))});`;
  const run = (): string =>
    execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
  expect(run).toThrow(/Node 18\.20\.0 is too old: install Node 20\.19 or newer/);
});

test(
  'without Kafka it runs with HTTP invalidation only, and says so',
  async () => {
    const path = pathWith('id', 'setpriv', 'redis-server', 'valkey-server');
    launcher = launch(startCommand, { ...env, PATH: path, JAVA_HOME: '' });
    await launcher.printed(/^Ready after/m);
    expect(launcher.output()).toMatch(
      /Kafka .* not to be had \(there is no Java 17 or newer\): invalidation by HTTP only/,
    );
    expect(launcher.output()).toMatch(/There is no Kafka: nothing was announced through it/);
    expect(JSON.parse(readFileSync(join(state, 'stack.json'), 'utf8'))).toMatchObject({ kafka: null });
    // SIGTERM for the bootstrap alone reaches the launcher behind it.
    const processes = processesOf(state);
    launcher.child.kill('SIGTERM');
    expect(await launcher.ended).toBe(0);
    expect(alive(processes)).toEqual([]);
  },
  LIMIT_MS,
);

test(
  'Ctrl-C while it starts leaves nothing behind',
  async () => {
    launcher = launch(startCommand, env);
    await launcher.printed(/✓ Redis/);
    const processes = processesOf(state);
    launcher.interrupt();
    expect(await launcher.ended).toBe(0);
    expect(alive(processes)).toEqual([]);
    expect(processesOf(state)).toEqual({});
  },
  LIMIT_MS,
);
