// `npm run test:compose [-- pattern]`: starts the full stack in containers as a separate project, runs the black-box
// tests and then this folder's tests against it, and removes it. Needs Docker with Compose.
import { createTerminal } from '../../deploy/local/terminal.ts';
import { untilStopped } from '../../deploy/local/until-stopped.ts';
import { findTests, type Selection } from '../jest.ts';
import { isStackReady } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { compose, docker, freePorts, writeStack } from './docker.ts';
import { needDocker, testInContainers } from './in-containers.ts';

await untilStopped(async (signal) => {
  const patterns = process.argv.slice(2);
  // The tests run in sequence, because they disrupt the shared stack.
  const own: Selection = { folder: 'test/compose', patterns, options: ['--runInBand'] };
  // The excluded tests need an identity provider and a mail server beside the stack. Two at a time, because each runs
  // admin commands in the container of auth.
  const blackBox: Selection = {
    patterns: ['\\.contract\\.test', 'test/contract/', 'test/browser/'],
    options: ['--testPathIgnorePatterns=/(identity|password-reset)\\.contract', '--maxWorkers=2'],
  };
  await findTests(own, signal);
  await needDocker(signal);
  const ports = await freePorts();
  const settings = {
    ...ports,
    COMPOSE_PROFILES: 'demo',
    BIND_ADDRESS: '127.0.0.1',
    OPERATIONS_BIND_ADDRESS: '127.0.0.1',
    PUBLIC_URL: `http://127.0.0.1:${ports['GATEWAY_PORT']}`,
    ADMIN_COMMAND: 'docker compose exec -T auth node services/auth/admin.ts',
  };
  async function up(): Promise<void> {
    const command = ['compose', 'up', '--build', '--wait', '--wait-timeout', '600'];
    await createTerminal().step('containers', () => docker(command, signal));
    await writeStack();
    await until('every service is ready', isStackReady, 120_000);
    // The demo's traffic has shown that the stack works, and would disturb the tests.
    await compose('stop', 'demo');
  }
  const files = ['docker-compose.yml', 'test/compose/stores.yml'];
  const suites = patterns.length > 0 ? [own] : [blackBox, own];
  return testInContainers('compose', files, settings, up, suites, signal);
}, 1);
