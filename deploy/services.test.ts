import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  addressSettings,
  endpoints,
  internalPortOffset,
  portOf,
  type Service,
  services,
} from '@content-platform/contract';
import { ROOT } from './local/config.ts';
import { connectionsOfContainers } from './render/configuration.ts';
import { compose } from './testing/compose.ts';

const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');

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

function problemsOf(service: Service): string[] {
  const { name } = service;
  const problems: string[] = [];
  const container = compose.services[name];
  if (!container) problems.push(`docker-compose.yml: services.${name} is missing`);
  else
    for (const [key, wanted] of Object.entries(wantedInCompose(service))) {
      const found = String(valueAt(container, key) ?? 'missing');
      if (found !== wanted)
        problems.push(`docker-compose.yml: services.${name}.${key} is ${found}, must be ${wanted}`);
    }
  if (!endpoints.some(({ service: owner }) => owner === name))
    problems.push(`services/contract: no endpoint has service '${name}'`);
  if (!name.split('-').some((word) => changelog.includes(word)))
    problems.push(`CHANGELOG.md: ${name} is not mentioned`);
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
