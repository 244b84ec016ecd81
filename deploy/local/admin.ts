// `npm run admin -- …`: the auth service's commands, on the running stack's database unless DATABASE_URL names another.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { environmentWith, readConfig, ROOT } from './config.ts';
import { printProblem } from './problem.ts';
import { readStack } from './stack-file.ts';

const AUTH = join(ROOT, 'services', 'auth');

/** Commands are files; help, and what is no command at all, are answered without a database. */
const needsDatabase = (command: string | undefined): boolean =>
  existsSync(join(AUTH, 'commands', `${command}.ts`));

/** @throws Problem when a database is needed and none is named or running */
function environment(command: string | undefined): NodeJS.ProcessEnv {
  if (!needsDatabase(command)) return environmentWith({});
  return environmentWith({ DATABASE_URL: readConfig().external.databaseUrl ?? readStack().postgres });
}

try {
  const args = process.argv.slice(2);
  const child = spawn(process.execPath, [...process.execArgv, join(AUTH, 'admin.ts'), ...args], {
    stdio: 'inherit',
    env: environment(args[0]),
  });
  child.on('exit', (code) => process.exit(code ?? 1));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
} catch (error) {
  printProblem(error);
  process.exitCode = 1;
}
