// `npm run admin -- …`: the auth service's commands, on the running stack's database unless DATABASE_URL names another.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { environmentWith, readConfig, ROOT } from './config.ts';
import { printProblem } from './problem.ts';
import { readStack } from './stack-file.ts';

try {
  const { databaseUrl = readStack().postgres } = readConfig().external;
  const args = [...process.execArgv, join(ROOT, 'services/auth/admin.ts'), ...process.argv.slice(2)];
  const child = spawn(process.execPath, args, {
    stdio: 'inherit',
    env: environmentWith({ DATABASE_URL: databaseUrl }),
  });
  child.on('exit', (code) => process.exit(code ?? 1));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
} catch (error) {
  printProblem(error);
  process.exitCode = 1;
}
