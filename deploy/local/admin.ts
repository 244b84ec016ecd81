// `npm run admin -- …`: runs a service's admin command on the database of the running stack, or on DATABASE_URL.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { environmentWith, readLauncherConfig, ROOT, stackFilePath } from './config.ts';
import { activateNextKeySecret, storeNextKeySecret, readSecrets } from './key-secret.ts';
import { printProblem } from './problem.ts';
import { serviceSecret } from './services.ts';
import { readStack, type Stack } from './stack-file.ts';
import { readJson } from './state.ts';

const servicesFolder = join(ROOT, 'services');

/** Services with admin commands. Each has an admin.ts and one file per command in its folder `commands`. */
const withCommands = readdirSync(servicesFolder).filter((name) =>
  existsSync(join(servicesFolder, name, 'admin.ts')),
);

const ownerOf = (command: string): string | undefined =>
  withCommands.find((name) => existsSync(join(servicesFolder, name, 'commands', `${command}.ts`)));

/** The database of a command. The other fields are set if it belongs to the running stack. */
interface Target {
  database: string;
  stack?: { secretsFile: string; authInternalUrl: string; logs: string };
}

/** @throws Problem if DATABASE_URL is not set and no stack is running */
function readTarget(): Target {
  const named = readLauncherConfig().external.databaseUrl;
  const file = stackFilePath();
  const running = named === undefined ? readStack(file) : readJson<Stack>(file);
  if (running && (named ?? running.postgres) === running.postgres) {
    const stack = {
      secretsFile: join(dirname(file), 'secrets.json'),
      authInternalUrl: running.services['auth']?.internal ?? '',
      logs: running.logs,
    };
    return { database: running.postgres, stack };
  }
  return { database: named! };
}

/** Runs a command of a service and resolves with its exit code. `quiet` shows only errors. */
function runCommand(service: string, args: string[], env: NodeJS.ProcessEnv, quiet = false): Promise<number> {
  const child = spawn(
    process.execPath,
    [...process.execArgv, join(servicesFolder, service, 'admin.ts'), ...args],
    {
      stdio: ['inherit', quiet ? 'ignore' : 'inherit', 'inherit'],
      env,
    },
  );
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)));
}

/** Rotates the key secret of a stack. The launcher generates the new secret, like the first one. */
async function rotateStackSecret(args: string[], database: string, file: string): Promise<number> {
  const secrets = storeNextKeySecret(file);
  const code = await runCommand('auth', args, environmentWith({ DATABASE_URL: database, ...secrets }), true);
  if (code !== 0) return code;
  activateNextKeySecret(file, secrets.AUTH_KEY_SECRET_NEW);
  console.log(
    `Encrypted the stack's keys with a new secret, which is in ${file}.\nRestart the stack (Ctrl-C, npm start). Until then its auth service continues with the keys that it has loaded.`,
  );
  return 0;
}

/** Prints the usage of all services. */
async function help(): Promise<number> {
  for (const service of withCommands) await runCommand(service, ['help'], environmentWith({}));
  return 0;
}

async function run(args: string[]): Promise<number> {
  const [command = 'help'] = args;
  if (command === 'help') return help();
  const owner = ownerOf(command);
  // An unknown command needs no database.
  if (owner === undefined) return runCommand('auth', args, environmentWith({}));
  const { database, stack } = readTarget();
  if (!stack) return runCommand(owner, args, environmentWith({ DATABASE_URL: database }));
  const { secretsFile, authInternalUrl, logs } = stack;
  const added = { DATABASE_URL: database, LOGS_DATABASE_URL: logs, AUTH_INTERNAL_URL: authInternalUrl };
  if (command === 'rotate-key-secret') return rotateStackSecret(args, database, secretsFile);
  const secrets = readSecrets(secretsFile);
  const { authKeySecret: AUTH_KEY_SECRET } = secrets;
  const SERVICE_SECRET = serviceSecret('letters', secrets);
  const MEDIA_FOLDER = join(dirname(secretsFile), 'media');
  return runCommand(
    owner,
    args,
    environmentWith({ ...added, AUTH_KEY_SECRET, SERVICE_SECRET, MEDIA_FOLDER }),
  );
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  printProblem(error);
  process.exitCode = 1;
}
