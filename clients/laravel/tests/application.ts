import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll } from '@jest/globals';
import { aptInstall, canInstall } from '../../../deploy/local/apt.ts';
import { environmentWith, ROOT, stackFilePath } from '../../../deploy/local/config.ts';
import { readSettings } from '../../../deploy/local/content-server/settings.ts';
import { identityOf } from '../../../deploy/local/identity.ts';
import { onPath, runCommand } from '../../../deploy/local/run-command.ts';
import { closeRecords } from '../../../test/support/records.ts';
import { until } from '../../../test/support/wait.ts';

const packages = [
  'php-cli',
  'php-curl',
  'php-mbstring',
  'php-pgsql',
  'php-sqlite3',
  'php-xml',
  'php-guzzlehttp-guzzle',
  'php-laravel-framework',
  'composer',
];
const files = ['/usr/share/php/Illuminate/autoload.php', '/usr/share/php/GuzzleHttp/autoload.php'];
const extensions = ['curl', 'mbstring', 'pdo_pgsql', 'pdo_sqlite', 'xml'];
/** A machine without the packages downloads 100 of them. */
export const installLimitMs = 300_000;

async function isInstalled(): Promise<boolean> {
  if (!onPath('php') || !onPath('composer') || !files.every((file) => existsSync(file))) return false;
  const { output } = await runCommand('php', ['-m']);
  return extensions.every((name) => output.split('\n').includes(name));
}

/** Installs PHP, Composer and Laravel as Debian packages. @throws Error that says what is missing */
async function installLaravel(): Promise<void> {
  const { signal } = new AbortController();
  if (await isInstalled()) return;
  if (!canInstall())
    throw new Error(`Install the Debian packages ${packages.join(' ')}. The tests do it as root on Debian.`);
  // Another test may hold the lock of the package lists.
  await until('the packages are installed', () => aptInstall(packages, signal), installLimitMs);
}

/** Composer without a registry. Debian's packages provide the classes of Laravel and Guzzle. */
const composerConfig = {
  repositories: [
    { 'packagist.org': false },
    {
      type: 'package',
      package: [{ name: 'laravel/framework', version: '8.83.26', type: 'metapackage' }],
    },
  ],
};

export type Application = Awaited<ReturnType<typeof createApplication>>;

/** Creates a Laravel application beside a folder `content-platform`, which looks like a clone in which the stack runs. */
export async function createApplication() {
  await installLaravel();
  const parent = mkdtempSync(join(ROOT, '.local', 'test-'));
  // Another `npm test` deletes the folders of runs that have ended.
  writeFileSync(join(parent, 'launcher.json'), JSON.stringify(identityOf(process.pid)));
  const folder = join(parent, 'app');
  cpSync(join(ROOT, 'clients', 'laravel', 'tests', 'app'), folder, { recursive: true });
  for (const name of [
    'bootstrap/cache',
    'database/migrations',
    'storage/framework/cache/data',
    'storage/logs',
  ])
    mkdirSync(join(folder, name), { recursive: true });
  for (const name of ['.env', 'database/database.sqlite']) writeFileSync(join(folder, name), '');
  const clone = join(parent, 'content-platform');
  mkdirSync(clone);
  symlinkSync(join(ROOT, 'clients'), join(clone, 'clients'));
  symlinkSync(dirname(stackFilePath()), join(clone, '.local'));
  const home = join(parent, 'composer');
  mkdirSync(home);
  writeFileSync(join(home, 'config.json'), JSON.stringify(composerConfig));
  const env = { COMPOSER_HOME: home, COMPOSER_ALLOW_SUPERUSER: '1', COMPOSER_NO_INTERACTION: '1' };
  return {
    folder,
    /** Environment of commands in the folder. */
    env,
    /** Runs a command in the folder and returns its exit code and output. */
    run: (command: string, args: string[], more: Record<string, string> = {}) =>
      runCommand(command, args, { cwd: folder, env: { ...env, ...more }, within: 60_000 }),
    /** Deletes the folder. */
    remove: () => rmSync(parent, { recursive: true, force: true }),
  };
}

/** Settings of the package for the stack under test. */
export function settingsOfStack() {
  const { gateway, clientId, clientSecret, database } = readSettings();
  return {
    PLATFORM_URL: gateway,
    PLATFORM_CLIENT: clientId,
    PLATFORM_SECRET: clientSecret,
    PLATFORM_DATABASE_URL: database,
    QUEUE_CONNECTION: 'database',
  };
}

/** Creates an application with the package and its tables, connected to the stack under test. */
export async function createConnectedApplication(): Promise<Application> {
  const application = await createApplication();
  const steps: [string, ...string[]][] = [
    ['composer', 'config', 'repositories.platform', 'path', '../content-platform/clients/laravel'],
    ['composer', 'require', '--quiet', 'content-platform/laravel'],
    ['php', 'artisan', 'queue:table'],
    ['php', 'artisan', 'queue:failed-table'],
    ['php', 'artisan', 'migrate', '--force'],
  ];
  for (const [command, ...args] of steps) {
    const { code, output } = await application.run(command, args);
    if (code !== 0) throw new Error(`${command} ${args.join(' ')}: ${output}`);
  }
  const lines = Object.entries(settingsOfStack()).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(join(application.folder, '.env'), lines.join(''));
  return application;
}

type Driver = ReturnType<typeof startDriver>;

/** Starts a PHP process in which the application is booted, and which evaluates code in it. */
export function startDriver({ folder, env }: Application, more: Record<string, string> = {}) {
  const child = spawn('php', ['driver.php'], {
    cwd: folder,
    env: environmentWith({ ...env, ...more }),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  let last: Promise<unknown> = Promise.resolve();
  async function evaluate<T>(code: string): Promise<T> {
    child.stdin.write(`${JSON.stringify({ code })}\n`);
    const [line] = (await once(lines, 'line')) as [string];
    const { value, error } = JSON.parse(line) as { value: T; error?: string };
    if (error !== undefined) throw new Error(error);
    return value;
  }
  return {
    /** Evaluates PHP code and resolves with the value that it returns. @throws Error with an exception's class and message */
    php<T = unknown>(code: string): Promise<T> {
      const answer = last.then(() => evaluate<T>(code));
      last = answer.catch(() => undefined);
      return answer;
    },
    stop: () => void child.kill('SIGKILL'),
  };
}

/** Creates an application for the tests of a file, and starts a driver. */
export function useApplication() {
  let application: Application;
  let driver: Driver;
  beforeAll(async () => {
    application = await createConnectedApplication();
    driver = startDriver(application);
  }, installLimitMs);
  afterAll(async () => {
    driver?.stop();
    application?.remove();
    await closeRecords();
  });
  return {
    php: ((code) => driver.php(code)) as Driver['php'],
    run: ((...args) => application.run(...args)) as Application['run'],
    /** Starts another driver. */
    startDriver: () => startDriver(application),
  };
}
