import { expect, test } from '@jest/globals';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { endpoints, internalPortOffset, type Service, services } from '@content-platform/contract';
import { ROOT } from './local/config.ts';
import { composeSettings } from './render/compose.ts';
import { compose } from './testing/compose.ts';

const read = (...path: string[]) => readFileSync(join(ROOT, ...path), 'utf8');
const changelog = read('CHANGELOG.md');
const kubernetes = read('docs', 'operations', 'kubernetes.md');
const scaling = read('docs', 'operations', 'scaling.md');
function wantedInCompose(service: Service): Record<string, string> {
  const kafka = service.stores.includes('kafka') && { KAFKA_BROKERS: 'kafka:9092' };
  const environment = { ...composeSettings(service), ...kafka };
  return {
    'build.args.SERVICE': service.name,
    mem_limit: `${service.memoryMb}m`,
    stop_grace_period: `${service.stopSeconds}s`,
    ...Object.fromEntries(Object.entries(environment).map(([key, value]) => [`environment.${key}`, value])),
  };
}

const valueAt = (value: unknown, path: string): unknown =>
  path.split('.').reduce((part, key) => (part as Record<string, unknown> | undefined)?.[key], value);

function composeProblems(service: Service): string[] {
  const { name } = service;
  const fields = Object.entries(wantedInCompose(service)).flatMap(([key, wanted]) => {
    const found = String(valueAt(compose.services[name], key) ?? 'missing');
    return found === wanted ? [] : [`services.${name}.${key} is ${found}, must be ${wanted}`];
  });
  const volume = `${name}-secrets:/run/secrets:ro`;
  const isMounted = compose.services[name]?.volumes?.includes(volume);
  const volumes = isMounted ? [] : [`${volume} is missing in volumes of services.${name}`];
  return [...fields, ...volumes].map((problem) => `docker-compose.yml: ${problem}`);
}

/** Whether a migration of the service names a column with the ids of users. */
function storesUsers({ name }: Service): boolean {
  const folder = join('services', name, 'migrations');
  return readdirSync(join(ROOT, folder)).some((file) => /\buser_id\b/.test(read(folder, file)));
}

/** Whether a program of the service calls this function. */
const calls = (name: string, call: string): boolean =>
  ['main.ts', 'start.ts'].some((file) => {
    const path = join('services', name, file);
    return existsSync(join(ROOT, path)) && read(path).includes(`${call}(`);
  });

function problemsOf(service: Service): string[] {
  const { name, schema, erasesUsers, exportsAs } = service;
  const list = 'services/contract/services.ts';
  // The list of clears of content-cache is no data about a user.
  const isExported = !erasesUsers || name === 'content-cache' || exportsAs;
  const isErased = erasesUsers || !schema || name === 'auth' || !storesUsers(service);
  const [, limit] = new RegExp(`^\\| ${name} \\|.* (\\d+) \\|$`, 'm').exec(scaling) ?? [];
  const isLimit = limit === undefined || Number(limit) === service.memoryMb;
  const loop = `for name in [^;]*\\b${name}\\b[^;]*; do\n *kubectl .* secret generic`;
  const isCreated = new RegExp(`secret generic ${name} |${loop}`).test(kubernetes);
  const checks = [
    [endpoints.some((one) => one.service === name), `services/contract: no endpoint has service '${name}'`],
    [isExported, `${list}: ${name} has no exportsAs, so GET /api/me/export lacks its data`],
    [isErased, `${list}: ${name} has no erasesUsers, but its migrations have user_id`],
    [
      !erasesUsers || calls(name, 'eraseDeletedUsers'),
      `services/${name}: main.ts does not call eraseDeletedUsers, so data of deleted users stays`,
    ],
    [
      !schema || calls(name, 'startRetention'),
      `services/${name}: main.ts does not call startRetention, so expired rows stay`,
    ],
    [name.split('-').some((word) => changelog.includes(word)), `CHANGELOG.md: ${name} is not mentioned`],
    [isLimit, `docs/operations/scaling.md: the memory limit of ${name} is ${service.memoryMb} MB`],
    [isCreated, `docs/operations/kubernetes.md: no command creates the secret ${name}`],
  ] as const;
  return [...composeProblems(service), ...checks.flatMap(([isRight, problem]) => (isRight ? [] : [problem]))];
}

test('files written by hand agree with services/contract/services.ts', () => {
  const problems = services.flatMap(problemsOf);
  if (problems.length > 0) throw new Error(`Change these to agree with the list:\n${problems.join('\n')}`);
});

test('each service has a port and a name of its own', () => {
  const ports = services.flatMap(({ port }) => [port, port + internalPortOffset]);
  expect(new Set(ports).size).toBe(ports.length);
  expect(new Set(services.map(({ name }) => name)).size).toBe(services.length);
});
