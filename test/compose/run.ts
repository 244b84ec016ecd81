// `npm run test:compose [-- pattern]`: brings up the full stack in containers under a project's name of its own, runs the
// black-box tests against it and then those of this folder, and takes it down again. What it needs is Docker with Compose.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DOWNLOADS, ROOT } from '../../deploy/local/config.ts';
import { Problem } from '../../deploy/local/problem.ts';
import { runCommand } from '../../deploy/local/run-command.ts';
import { writePrivate } from '../../deploy/local/state.ts';
import { createTerminal } from '../../deploy/local/terminal.ts';
import { untilStopped } from '../../deploy/local/until-stopped.ts';
import { type Counts, filesOf, runJest, type Selection } from '../jest.ts';
import { isWell } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { compose, describeStack, docker, freePorts } from './docker.ts';

/** Docker takes the name of the project for everything that it makes. */
async function settings(): Promise<Record<string, string>> {
  const ports = await freePorts();
  return {
    ...ports,
    COMPOSE_PROJECT_NAME: `content-platform-test-${process.pid}`,
    COMPOSE_FILE: ['docker-compose.yml', 'test/compose/published.yml']
      .map((file) => join(ROOT, file))
      .join(':'),
    COMPOSE_PROFILES: 'demo',
    BIND_ADDRESS: '127.0.0.1',
    PUBLIC_URL: `http://127.0.0.1:${ports['GATEWAY_PORT']}`,
    ADMIN_COMMAND: 'docker compose exec -T auth node services/auth/admin.ts',
    // Who reaches the gateway from here comes through Docker's own networks; each test is a client of its own.
    TRUSTED_PROXIES: '172.16.0.0/12,192.168.0.0/16',
  };
}

async function testStack(folder: string, patterns: string[], signal: AbortSignal): Promise<Counts> {
  const terminal = createTerminal();
  const stackFile = join(folder, 'stack.json');
  const up = ['compose', 'up', '--build', '--wait', '--wait-timeout', '600'];
  await terminal.step('containers', () => docker(up, signal));
  process.env['STACK_FILE'] = stackFile;
  writePrivate(stackFile, await describeStack());
  await until('all is well', isWell, 120_000);
  // Its steady traffic has shown that it works, and would be in the tests' way.
  await compose('stop', 'demo');
  // One after the other: they share the stack, and do it harm.
  const own: Selection = { folder: 'test/compose', patterns, options: ['--runInBand'] };
  // The one that is left out starts a process of its own beside those of `npm start`.
  const blackBox: Selection = {
    patterns: ['test/contract/', 'test/browser/'],
    options: ['--testPathIgnorePatterns=contract/identity'],
  };
  const suites = patterns.length > 0 ? [own] : [blackBox, own];
  const counts = { passed: 0, failed: 0 };
  for (const [index, suite] of suites.entries()) {
    const { passed, failed } = await runJest(suite, stackFile, join(folder, `report-${index}.json`), signal);
    counts.passed += passed;
    counts.failed += failed;
  }
  return counts;
}

await untilStopped(async (signal) => {
  const patterns = process.argv.slice(2);
  await filesOf({ folder: 'test/compose', patterns }, signal);
  const { code } = await runCommand('docker', ['compose', 'version'], { signal });
  if (code !== 0)
    throw new Problem('Docker with Compose is needed for this, and `docker compose` is not there.');
  Object.assign(process.env, await settings());
  const folder = join(DOWNLOADS, `compose-${process.pid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    const { passed, failed } = await testStack(folder, patterns, signal).catch(async (error: unknown) => {
      signal.throwIfAborted();
      console.error(error);
      console.error(await compose('logs', '--tail', '5'));
      return { passed: 0, failed: 1 };
    });
    console.log(`${passed} passed, ${failed} failed`);
    return failed === 0 ? 0 : 1;
  } finally {
    await compose('down', '--volumes', '--rmi', 'local', '--timeout', '5');
    rmSync(folder, { recursive: true, force: true });
  }
}, 1);
