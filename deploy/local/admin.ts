// `npm run admin -- …`: runs a service's admin command on the database of the running stack, or on DATABASE_URL.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  environmentWith,
  platformUrl,
  readLauncherConfig,
  ROOT,
  setEnvironment,
  stackFilePath,
} from './config.ts';
import { readSecrets, rotateKeySecret } from './key-secret.ts';
import { printProblem } from './problem.ts';
import { serviceSecret } from './service-process.ts';
import { readStack, type Stack } from './stack-file.ts';
import { readJson } from './state.ts';

const servicesFolder = join(ROOT, 'services');

/** Services with admin commands. Each names its commands in its admin.ts. */
const servicesWithCommands = readdirSync(servicesFolder).filter((name) =>
  existsSync(join(servicesFolder, name, 'admin.ts')),
);

const serviceOf = (command: string): string | undefined =>
  servicesWithCommands.find((name) =>
    readFileSync(join(servicesFolder, name, 'admin.ts'), 'utf8').includes(`'${command}':`),
  );

/** Runs a command of a service in this process. An error sets the exit code. */
async function runInProcess(service: string, args: string[], added: Record<string, string> = {}) {
  setEnvironment(added);
  process.argv.splice(2, Infinity, ...args);
  await import(`../../services/${service}/admin.ts`);
}

/**
 * Encrypts the keys; resolves with whether it succeeded. A child process, because the command's output must be hidden: it
 * asks the user to set the new secret, which the launcher does itself.
 */
function encryptKeys(args: string[], added: Record<string, string>): Promise<boolean> {
  const script = join(servicesFolder, 'auth', 'admin.ts');
  const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
    stdio: ['inherit', 'ignore', 'inherit'],
    env: environmentWith(added),
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => child.on('exit', (code) => resolve(code === 0)));
}

/** Rotates the key secret of a stack. The launcher generates the new secret, like the first one. */
async function rotateStackSecret(args: string[], database: string, file: string): Promise<void> {
  let done = false;
  await rotateKeySecret(database, file, async (settings) => (done = await encryptKeys(args, settings)));
  if (!done) return void (process.exitCode = 1);
  console.log(
    `Encrypted the stack's keys with a new secret, which is in ${file}.\nRestart the stack (Ctrl-C, npm start). Until then its auth service continues with the keys that it has loaded.`,
  );
}

/** @throws Problem if DATABASE_URL is not set and no stack is running */
async function run(args: string[]): Promise<void> {
  const [command = 'help'] = args;
  if (command === 'help') {
    for (const service of servicesWithCommands) await runInProcess(service, ['help']);
    return;
  }
  const service = serviceOf(command);
  // An unknown command needs no database.
  if (service === undefined) return runInProcess('auth', args);
  const { databaseUrl } = readLauncherConfig().external;
  const file = stackFilePath();
  // Without DATABASE_URL a stack must be running: otherwise readStack throws.
  const stack = databaseUrl === undefined ? readStack(file) : readJson<Stack>(file);
  // If DATABASE_URL names another database, the settings of the stack do not apply to it.
  if (!stack || (databaseUrl !== undefined && platformUrl(databaseUrl) !== stack.postgres))
    return runInProcess(service, args, { DATABASE_URL: databaseUrl! });
  const secretsFile = join(dirname(file), 'secrets.json');
  if (command === 'rotate-key-secret') return rotateStackSecret(args, stack.postgres, secretsFile);
  const secrets = readSecrets(secretsFile);
  return runInProcess(service, args, {
    DATABASE_URL: stack.postgres,
    LOGS_DATABASE_URL: stack.logs,
    AUTH_INTERNAL_URL: stack.services['auth']?.internal ?? '',
    AUTH_KEY_SECRET: secrets.authKeySecret,
    SERVICE_SECRET: serviceSecret('letters', secrets), // for create-letter; no other command reads it
    MEDIA_FOLDER: join(dirname(file), 'media'),
  });
}

try {
  await run(process.argv.slice(2));
} catch (error) {
  printProblem(error);
  process.exitCode = 1;
}
