import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { runCommand } from '../../deploy/local/run-command.ts';
import { services } from '@content-platform/contract';
import { tokenOf } from '../support/accounts.ts';
import { raceWhile } from '../support/gateway-race.ts';
import { unpackRelease } from '../support/releases.ts';
import { stack } from '../support/stack.ts';
import { containersOf, docker, up, writeStack } from './docker.ts';
import { closeAfterRaces, expectNoFailure, untilStackReady } from './races.ts';

/** All upstream services. The gateway has one published port, so two gateways would need a load balancer. */
const upstreams = services.map(({ name }) => name).filter((name) => name !== 'gateway');
const imageOf = (service: string) => `${process.env['COMPOSE_PROJECT_NAME']}-${service}`;

/** Returns the last commit before the newest schema change: it must run on the current schema. */
async function releaseBefore(): Promise<string> {
  const git = async (...args: string[]) => (await runCommand('git', args, { cwd: ROOT })).output.trim();
  const change = await git('log', '-1', '--format=%H', '--', 'services/*/migrations/*.sql');
  return git('rev-parse', '--verify', `${change}^`);
}

/** Builds that release's images with the current Dockerfile. */
async function buildReleaseBefore(): Promise<void> {
  const folder = await unpackRelease(await releaseBefore());
  try {
    for (const file of ['deploy/Dockerfile', 'deploy/compose/health.sh', '.dockerignore'])
      cpSync(join(ROOT, file), join(folder, file), { recursive: true });
    for (const service of upstreams) {
      const tag = ['--tag', `${imageOf(service)}:before`, '--build-arg', `SERVICE=${service}`];
      await docker(['build', '--quiet', ...tag, '--file', join(folder, 'deploy/Dockerfile'), folder]);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Starts one more container of the service from the current image, then removes the old one. */
async function roll(service: string): Promise<void> {
  const [old] = await containersOf(service);
  await up('--scale', `${service}=2`, service);
  await docker(['stop', old!]);
  await docker(['rm', old!]);
}

beforeAll(async () => {
  await Promise.all((['user', 'machine'] as const).map((account) => tokenOf(stack().gateway, account)));
  await buildReleaseBefore();
  for (const service of upstreams) await docker(['tag', imageOf(service), `${imageOf(service)}:now`]);
}, 600_000);
beforeEach(untilStackReady);
closeAfterRaces();
afterAll(async () => {
  for (const service of upstreams)
    await docker(['rmi', '--force', `${imageOf(service)}:before`, `${imageOf(service)}:now`]);
});

test.each([
  ['rollback, onto the schema of now', 'before'],
  ['update', 'now'],
])(
  '%s: no request fails, no read is stale, no event is lost',
  async (_, release) => {
    const figures = await raceWhile({ readsPerSecond: 200, changesPerSecond: 3 }, async () => {
      for (const service of upstreams) {
        await docker(['tag', `${imageOf(service)}:${release}`, imageOf(service)]);
        await roll(service);
      }
      await writeStack();
    });
    await expectNoFailure(`to the release ${release}`, figures);
    expect(figures.refused).toBe(0);
    const images = await Promise.all(
      upstreams.map(async (service) =>
        docker(['inspect', '--format', '{{.Image}}', (await containersOf(service))[0]!]),
      ),
    );
    const wanted = upstreams.map((service) =>
      docker(['image', 'inspect', '--format', '{{.Id}}', `${imageOf(service)}:${release}`]),
    );
    expect(images).toEqual(await Promise.all(wanted));
    await untilStackReady();
  },
  600_000,
);
