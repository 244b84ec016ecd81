// `npm run test:cluster [-- pattern]`: brings up the platform with stores that fail over, in containers: first with a Redis
// Cluster and three brokers, then with sentinels. Runs the tests of this folder against each, and takes it down again.
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { DockerComposeEnvironment } from 'testcontainers';
import { DOWNLOADS, ROOT } from '../../deploy/local/config.ts';
import { freePort } from '../../deploy/local/ports.ts';
import { Problem } from '../../deploy/local/problem.ts';
import { runCommand } from '../../deploy/local/run-command.ts';
import { createTerminal } from '../../deploy/local/terminal.ts';
import { untilStopped } from '../../deploy/local/until-stopped.ts';
import { compose, freePorts } from '../compose/docker.ts';
import { type Counts, filesOf, runJest } from '../jest.ts';
import { processes } from './containers.ts';
import { type ClusterStack, stacks } from './stacks.ts';

const everywhere = ['docker-compose.yml', 'test/compose/published.yml', 'test/cluster/processes.yml'];
const startTimeoutMs = 600_000;

/** What the files of compose ask for; docker compose, run by tests, speaks of the same project by it. */
async function settings({ name, files, ports, redisUrl }: ClusterStack): Promise<Record<string, string>> {
  const password = randomBytes(24).toString('hex');
  const own = await Promise.all(ports.map(async (port) => [port, String(await freePort())] as const));
  return {
    ...(await freePorts()),
    ...Object.fromEntries(own),
    COMPOSE_PROJECT_NAME: `content-platform-${name}-${process.pid}`,
    COMPOSE_FILE: [...everywhere, ...files].map((file) => join(ROOT, file)).join(':'),
    TEST_REDIS_PASSWORD: password,
    TEST_REDIS_URL: redisUrl(password),
    // Who reaches a gateway from here comes through Docker's own networks; each test is a client of its own.
    TRUSTED_PROXIES: '172.16.0.0/12,192.168.0.0/16',
    // It would take down what a killed run has left. This one takes down everything itself.
    TESTCONTAINERS_RYUK_DISABLED: 'true',
  };
}

async function up({ files, stores, prepare }: ClusterStack, signal: AbortSignal): Promise<void> {
  const environment = new DockerComposeEnvironment(ROOT, [...everywhere, ...files])
    .withProjectName(process.env['COMPOSE_PROJECT_NAME']!)
    .withStartupTimeout(startTimeoutMs);
  const terminal = createTerminal();
  await terminal.step('stores', () => environment.up(stores));
  signal.throwIfAborted();
  await prepare?.();
  await terminal.step('processes', () => environment.withBuild().up(Object.keys(processes)));
  signal.throwIfAborted();
}

async function testStack(one: ClusterStack, tests: string[], signal: AbortSignal): Promise<Counts> {
  const before = { ...process.env };
  Object.assign(process.env, await settings(one));
  const folder = join(DOWNLOADS, `${one.name}-${process.pid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const [stackFile, report] = [join(folder, 'stack.json'), join(folder, 'report.json')];
  try {
    await up(one, signal);
    // One file at a time: they all do something to the same stack.
    const selection = { folder: `test/cluster/${one.name}`, patterns: tests, options: ['--runInBand'] };
    return await runJest(selection, stackFile, report, signal);
  } catch (error) {
    signal.throwIfAborted();
    console.error(error);
    console.error(await compose('logs', '--tail', '5'));
    return { passed: 0, failed: 1 };
  } finally {
    await compose('down', '--volumes', '--rmi', 'local', '--timeout', '5');
    rmSync(folder, { recursive: true, force: true });
    process.env = before;
  }
}

await untilStopped(async (signal) => {
  const patterns = process.argv.slice(2);
  const files = await filesOf({ folder: 'test/cluster', patterns }, signal);
  const { code } = await runCommand('docker', ['compose', 'version'], { signal });
  if (code !== 0)
    throw new Problem('Docker with Compose is needed for this, and `docker compose` is not there.');
  const counts = { passed: 0, failed: 0 };
  for (const one of stacks) {
    const own = files.filter((file) => file.includes(`/test/cluster/${one.name}/`));
    if (own.length === 0) continue;
    const { passed, failed } = await testStack(
      one,
      own.map((file) => basename(file)),
      signal,
    );
    counts.passed += passed;
    counts.failed += failed;
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  return counts.failed === 0 ? 0 : 1;
}, 1);
