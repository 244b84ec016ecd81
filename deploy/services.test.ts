import { expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  addressSettings,
  endpoints,
  internalPortOffset,
  portOf,
  serviceOf,
  type Service,
  services,
} from '@content-platform/contract';
import { ROOT } from './local/config.ts';
import { connectionsOfContainers } from './render/configuration.ts';
import { compose } from './testing/compose.ts';

const read = (...path: string[]) => readFileSync(join(ROOT, ...path), 'utf8');
const changelog = read('CHANGELOG.md');
const architecture = read('docs', 'concepts', 'architecture.md');
const kubernetes = read('docs', 'operations', 'kubernetes.md');
const scaling = read('docs', 'operations', 'scaling.md');

const storeSettings = {
  postgres: { DATABASE_URL_FILE: '/run/secrets/database-url' },
  redis: { REDIS_URL_FILE: '/run/secrets/redis-url' },
  kafka: { KAFKA_BROKERS: 'kafka:9092' },
};

/** Expected fields of a service in docker-compose.yml. */
function wantedInCompose(service: Service): Record<string, string> {
  const urlOf = (name: Service['name'], listener: 'public' | 'internal') =>
    `http://${name}:${portOf(name) + (listener === 'internal' ? internalPortOffset : 0)}`;
  const environment = {
    PORT: String(service.port),
    ...addressSettings(service, urlOf),
    ...(service.hasSecret && { SERVICE_SECRET_FILE: '/run/secrets/service-secret' }),
    ...Object.assign({}, ...service.stores.map((store) => storeSettings[store])),
  };
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
  const volume = `${name}-secrets`;
  const fields = Object.entries(wantedInCompose(service)).flatMap(([key, wanted]) => {
    const found = String(valueAt(compose.services[name], key) ?? 'missing');
    return found === wanted ? [] : [`services.${name}.${key} is ${found}, must be ${wanted}`];
  });
  const mounts = [
    [name, `${volume}:/run/secrets:ro`],
    ['secrets', `${volume}:/secrets/${name}`],
  ].filter(([reader, mount]) => !compose.services[reader!]?.volumes?.includes(mount!));
  return [
    ...fields,
    ...mounts.map(([reader, mount]) => `services.${reader}.volumes has no ${mount}`),
    ...(volume in compose.volumes ? [] : [`volumes has no ${volume}`]),
  ].map((problem) => `docker-compose.yml: ${problem}`);
}

/** Whether a migration of the service names a column with the ids of users. */
function storesUsers({ name }: Service): boolean {
  const folder = join('services', name, 'migrations');
  return readdirSync(join(ROOT, folder)).some((file) => /\buser_id\b/.test(read(folder, file)));
}

function problemsOf(service: Service): string[] {
  const { name, schema, erasesUsers } = service;
  const problems = composeProblems(service);
  if (!endpoints.some(({ service: owner }) => owner === name))
    problems.push(`services/contract: no endpoint has service '${name}'`);
  const { callsInternal: exported = [] } = serviceOf('auth');
  // The list of clears of content-cache is no data about a user.
  if (erasesUsers && name !== 'content-cache' && !exported.includes(name))
    problems.push(
      `services/contract/services.ts: auth.callsInternal has no ${name}, so GET /api/me/export lacks its data`,
    );
  if (schema && name !== 'auth' && storesUsers(service) && !erasesUsers)
    problems.push(
      `services/contract/services.ts: ${name} has no erasesUsers, but its migrations have user_id`,
    );
  if (!name.split('-').some((word) => changelog.includes(word)))
    problems.push(`CHANGELOG.md: ${name} is not mentioned`);
  const [, limit] = new RegExp(`^\\| ${name} \\|.* (\\d+) \\|$`, 'm').exec(scaling) ?? [];
  if (limit !== undefined && Number(limit) !== service.memoryMb)
    problems.push(`docs/operations/scaling.md: the memory limit of ${name} is ${service.memoryMb} MB`);
  if (!architecture.includes(`\n| ${name} | `))
    problems.push(`docs/concepts/architecture.md: the table of processes has no row ${name}`);
  const loop = `for name in [^;]*\\b${name}\\b[^;]*; do\n *kubectl .* secret generic`;
  if (!new RegExp(`secret generic ${name} |${loop}`).test(kubernetes))
    problems.push(`docs/operations/kubernetes.md: no command creates the secret ${name}`);
  return problems;
}

function problemsOfPostgres(): string[] {
  const command = compose.services['postgres']!.command!.join(' ');
  const found = Number(/max_connections=(\d+)/.exec(command)?.[1]);
  // A content server opens some connections too.
  const wanted = connectionsOfContainers(3) + 30;
  if (found >= wanted) return [];
  return [
    `docker-compose.yml: services.postgres.command has max_connections=${found}, must be ${wanted} or more: three containers of each service and a content server open so many`,
  ];
}

test('files written by hand agree with services/contract/services.ts', () => {
  const problems = [...services.flatMap(problemsOf), ...problemsOfPostgres()];
  if (problems.length > 0) throw new Error(`Change these to agree with the list:\n${problems.join('\n')}`);
  expect(problems).toEqual([]);
});

test('each service has a port and a name of its own', () => {
  const ports = services.flatMap(({ port }) => [port, port + internalPortOffset]);
  expect(new Set(ports).size).toBe(ports.length);
  expect(new Set(services.map(({ name }) => name)).size).toBe(services.length);
});
