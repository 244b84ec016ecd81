import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { internalPortOffset, services } from '@content-platform/contract';
import { DOWNLOADS, ROOT } from '../../deploy/local/config.ts';
import { Problem } from '../../deploy/local/problem.ts';
import { runCommand } from '../../deploy/local/run-command.ts';
import { runJest, type Selection } from '../jest.ts';
import { compose } from './docker.ts';

/** Checks for Docker. @throws Problem without Docker and Compose */
export async function needDocker(signal: AbortSignal): Promise<void> {
  const { code } = await runCommand('docker', ['compose', 'version'], { signal });
  if (code !== 0)
    throw new Problem('Docker with Compose is needed for this, and `docker compose` is not there.');
}

/** Publishes the listeners of each service on ports that Docker chooses, so that services can be scaled. */
function publishServices(): string {
  const ports = services.map(({ name, port }) => {
    const internal = `127.0.0.1::${port + internalPortOffset}`;
    // docker-compose.yml publishes the gateway itself.
    return [name, { ports: name === 'gateway' ? [internal] : [`127.0.0.1::${port}`, internal] }];
  });
  return JSON.stringify({ services: Object.fromEntries(ports) });
}

/**
 * Starts a stack in containers, runs tests against it and removes it. The environment contains the Compose `files` and
 * `settings` meanwhile, so that docker compose uses the same project in tests. Prints counts, returns the exit code.
 * @param up resolves once the stack is ready for tests
 */
export async function testInContainers(
  name: string,
  files: readonly string[],
  settings: Record<string, string>,
  up: () => Promise<void>,
  suites: readonly Selection[],
  signal: AbortSignal,
): Promise<number> {
  const before = { ...process.env };
  const folder = join(DOWNLOADS, `${name}-${process.pid}`);
  const stackFile = join(folder, 'stack.json');
  const published = join(folder, 'published.json');
  Object.assign(process.env, settings, {
    COMPOSE_PROJECT_NAME: `content-platform-${name}-${process.pid}`,
    COMPOSE_FILE: [...files.map((file) => join(ROOT, file)), published].join(':'),
    // Clients on this host reach the gateway through Docker's networks; trusting these lets each test choose its own
    // client IP address.
    TRUSTED_PROXIES: '172.16.0.0/12,192.168.0.0/16',
    STACK_FILE: stackFile,
  });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(published, publishServices());
  const counts = { passed: 0, failed: 0 };
  try {
    await up();
    signal.throwIfAborted();
    for (const [index, suite] of suites.entries()) {
      const report = join(folder, `report-${index}.json`);
      const { passed, failed } = await runJest(suite, stackFile, report, signal);
      counts.passed += passed;
      counts.failed += failed;
    }
  } catch (error) {
    signal.throwIfAborted();
    console.error(error);
    console.error(await compose('logs', '--tail', '5'));
    counts.failed += 1;
  } finally {
    await compose('down', '--volumes', '--rmi', 'local', '--timeout', '5');
    rmSync(folder, { recursive: true, force: true });
    process.env = before;
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  return counts.failed === 0 ? 0 : 1;
}
