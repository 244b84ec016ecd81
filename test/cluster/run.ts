// `npm run test:cluster [-- pattern]`: starts the platform in containers with stores that fail over: first with a Redis
// Cluster and three brokers, then with sentinels. Runs this folder's tests against each stack and removes it.
import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import { DockerComposeEnvironment } from 'testcontainers';
import { ROOT } from '../../deploy/local/config.ts';
import { freePort } from '../../deploy/local/ports.ts';
import { createTerminal } from '../../deploy/local/terminal.ts';
import { untilStopped } from '../../deploy/local/until-stopped.ts';
import { freePorts } from '../compose/docker.ts';
import { needDocker, testInContainers } from '../compose/in-containers.ts';
import { type Counts, filesOf } from '../jest.ts';
import { processes } from './containers.ts';
import { type ClusterStack, stacks } from './stacks.ts';

const everywhere = ['docker-compose.yml', 'test/compose/stores.yml', 'test/cluster/processes.yml'];
const startTimeoutMs = 600_000;

/** Returns the variables of the Compose files. */
async function settings({ ports, redisUrl }: ClusterStack): Promise<Record<string, string>> {
  const password = randomBytes(24).toString('hex');
  const own = await Promise.all(ports.map(async (port) => [port, String(await freePort())] as const));
  return {
    ...(await freePorts()),
    ...Object.fromEntries(own),
    TEST_REDIS_PASSWORD: password,
    TEST_REDIS_URL: redisUrl(password),
    // Ryuk would delete what a killed run has left. This run deletes its containers itself.
    TESTCONTAINERS_RYUK_DISABLED: 'true',
  };
}

async function testStack(one: ClusterStack, tests: string[], signal: AbortSignal): Promise<Counts> {
  const files = [...everywhere, ...one.files];
  async function up(): Promise<void> {
    const environment = new DockerComposeEnvironment(ROOT, files)
      .withProjectName(process.env['COMPOSE_PROJECT_NAME']!)
      .withStartupTimeout(startTimeoutMs);
    const terminal = createTerminal();
    await terminal.step('stores', () => environment.up(one.stores));
    signal.throwIfAborted();
    await one.prepare?.();
    await terminal.step('processes', () => environment.withBuild().up(Object.keys(processes)));
  }
  // The files run in sequence, because all of them act on the same stack.
  const suite = { folder: `test/cluster/${one.name}`, patterns: tests, options: ['--runInBand'] };
  return testInContainers(one.name, files, await settings(one), up, [suite], signal);
}

await untilStopped(async (signal) => {
  const files = await filesOf({ folder: 'test/cluster', patterns: process.argv.slice(2) }, signal);
  await needDocker(signal);
  const counts = { passed: 0, failed: 0 };
  for (const one of stacks) {
    const own = files.filter((file) => file.includes(`/test/cluster/${one.name}/`));
    if (own.length === 0) continue;
    const names = own.map((file) => basename(file));
    const { passed, failed } = await testStack(one, names, signal);
    counts.passed += passed;
    counts.failed += failed;
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  return counts.failed === 0 ? 0 : 1;
}, 1);
