// `npm run test:cluster [-- pattern]`: starts the platform in containers with a Redis Cluster and three brokers, runs this
// folder's tests against it, and removes it. Needs Docker with Compose.
import { randomBytes } from 'node:crypto';
import { DockerComposeEnvironment } from 'testcontainers';
import { ROOT } from '../../deploy/local/config.ts';
import { freePort } from '../../deploy/local/ports.ts';
import { createTerminal } from '../../deploy/local/terminal.ts';
import { untilStopped } from '../../deploy/local/until-stopped.ts';
import { freePorts } from '../compose/docker.ts';
import { needDocker, testInContainers } from '../compose/in-containers.ts';
import { findTests } from '../jest.ts';
import { processes } from './containers.ts';
import { makeCluster } from './redis-cluster/nodes.ts';

const files = [
  'docker-compose.yml',
  'test/compose/stores.yml',
  'test/cluster/processes.yml',
  'test/cluster/redis-cluster/kafka.yml',
  'test/cluster/redis-cluster/stack.yml',
];
const stores = ['postgres', 'kafka', 'kafka-2', 'kafka-3', 'redis-node'];
const startTimeoutMs = 600_000;

await untilStopped(async (signal) => {
  // The tests run in sequence, because all of them act on the same stack.
  const suite = { folder: 'test/cluster', patterns: process.argv.slice(2), options: ['--runInBand'] };
  await findTests(suite, signal);
  await needDocker(signal);
  const password = randomBytes(24).toString('hex');
  const settings = {
    ...(await freePorts()),
    TEST_KAFKA_2_PORT: String(await freePort()),
    TEST_KAFKA_3_PORT: String(await freePort()),
    TEST_REDIS_PASSWORD: password,
    TEST_REDIS_URL: `redis-cluster://:${password}@redis-node:6379`,
    // Ryuk would delete what a killed run has left. This run deletes its containers itself.
    TESTCONTAINERS_RYUK_DISABLED: 'true',
  };
  async function up(): Promise<void> {
    // With the file that publishes the services' ports.
    const environment = new DockerComposeEnvironment(ROOT, process.env['COMPOSE_FILE']!.split(':'))
      .withProjectName(process.env['COMPOSE_PROJECT_NAME']!)
      .withStartupTimeout(startTimeoutMs);
    const terminal = createTerminal();
    await terminal.step('stores', () => environment.up(stores));
    signal.throwIfAborted();
    await makeCluster();
    await terminal.step('processes', () => environment.withBuild().up(Object.keys(processes)));
  }
  return testInContainers('cluster', files, settings, up, [suite], signal);
}, 1);
