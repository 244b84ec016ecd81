// `npm run admin -- …`: runs a service's admin command on the database of the running stack, or on DATABASE_URL.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { environmentWith, readLauncherConfig, ROOT, stackFilePath } from './config.ts';
import { readSecrets, rotateKeySecret } from './key-secret.ts';
import { printProblem } from './problem.ts';
import { serviceSecret } from './service-process.ts';
import { readStack, type Stack } from './stack-file.ts';
import { readJson } from './state.ts';

const servicesFolder = join(ROOT, 'services');

/** Services with admin commands. Each names its commands in its admin.ts. */
const withCommands = readdirSync(servicesFolder).filter((name) =>
  existsSync(join(servicesFolder, name, 'admin.ts')),
);

const ownerOf = (command: string): string | undefined =>
  withCommands.find((name) =>
    readFileSync(join(servicesFolder, name, 'admin.ts'), 'utf8').includes(`'${command}':`),
  );

/** Runs a command of a service and resolves with its exit code. `quiet` shows only errors. */
function runCommand(
  service: string,
  args: string[],
  added: Record<string, string> = {},
  quiet = false,
): Promise<number> {
  const script = join(servicesFolder, service, 'admin.ts');
  const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
    stdio: ['inherit', quiet ? 'ignore' : 'inherit', 'inherit'],
    env: environmentWith(added),
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)));
}

/** Rotates the key secret of a stack. The launcher generates the new secret, like the first one. */
async function rotateStackSecret(args: string[], database: string, file: string): Promise<number> {
  let code = 0;
  await rotateKeySecret(database, file, async (settings) => {
    code = await runCommand('auth', args, settings, true);
    return code === 0;
  });
  if (code === 0)
    console.log(
      `Encrypted the stack's keys with a new secret, which is in ${file}.\nRestart the stack (Ctrl-C, npm start). Until then its auth service continues with the keys that it has loaded.`,
    );
  return code;
}

async function help(): Promise<number> {
  for (const service of withCommands) await runCommand(service, ['help']);
  return 0;
}

/** @throws Problem if DATABASE_URL is not set and no stack is running */
async function run(args: string[]): Promise<number> {
  const [command = 'help'] = args;
  if (command === 'help') return help();
  const owner = ownerOf(command);
  // An unknown command needs no database.
  if (owner === undefined) return runCommand('auth', args);
  const named = readLauncherConfig().external.databaseUrl;
  const file = stackFilePath();
  const stack = named === undefined ? readStack(file) : readJson<Stack>(file);
  // DATABASE_URL may name another database than that of the running stack.
  if (!stack || (named !== undefined && named !== stack.postgres))
    return runCommand(owner, args, { DATABASE_URL: named! });
  const secretsFile = join(dirname(file), 'secrets.json');
  if (command === 'rotate-key-secret') return rotateStackSecret(args, stack.postgres, secretsFile);
  const secrets = readSecrets(secretsFile);
  return runCommand(owner, args, {
    DATABASE_URL: stack.postgres,
    LOGS_DATABASE_URL: stack.logs,
    AUTH_INTERNAL_URL: stack.services['auth']?.internal ?? '',
    AUTH_KEY_SECRET: secrets.authKeySecret,
    SERVICE_SECRET: serviceSecret('letters', secrets),
    MEDIA_FOLDER: join(dirname(file), 'media'),
  });
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  printProblem(error);
  process.exitCode = 1;
}
