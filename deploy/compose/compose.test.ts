import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { services } from '@content-platform/contract';
import { ROOT } from '../local/config.ts';
import { compose, composeText } from '../testing/compose.ts';

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const containers = Object.entries(compose.services);

test.each(containers)('%s runs hardened, with limits for memory and processes', (name, one) => {
  expect(one).toMatchObject({
    // Kafka's image writes its configuration when it starts.
    read_only: name !== 'kafka',
    security_opt: ['no-new-privileges:true'],
    cap_drop: ['ALL'],
    pids_limit: expect.any(Number),
    mem_limit: expect.stringMatching(/^\d+[mg]$/),
  });
});

test('uses the published port in URLs', () => {
  const settings = containers.flatMap(([, { environment = {} }]) => Object.entries(environment));
  const given = settings.filter(([name]) => /^(PUBLIC|GRAFANA|JAEGER)_URL$/.test(name));
  expect(Object.fromEntries(given)).toEqual({
    PUBLIC_URL: '${PUBLIC_URL:-http://127.0.0.1:${GATEWAY_PORT:-8080}}',
    GRAFANA_URL: '${GRAFANA_URL:-http://127.0.0.1:${GRAFANA_PORT:-3000}}',
    JAEGER_URL: '${JAEGER_URL:-http://127.0.0.1:${JAEGER_PORT:-16686}}',
  });
});

test('images contain no tests and no test dependencies', () => {
  const left = read('.dockerignore').split('\n').slice(-5);
  expect(left).toEqual(expect.arrayContaining(['**/*.test.ts', '**/testing', '**/proof']));
});

test('publishes the gateway and the operations tools on addresses of their own, both loopback by default', () => {
  const published = containers.filter(([, { ports }]) => ports);
  const names = ['gateway', 'prometheus', 'alertmanager', 'grafana', 'jaeger'];
  expect(published.map(([name]) => name)).toEqual(names);
  for (const [name, { ports = [] }] of published)
    for (const port of ports) {
      const setting = name === 'gateway' ? 'BIND_ADDRESS' : 'OPERATIONS_BIND_ADDRESS';
      expect(port.startsWith(`\${${setting}:-127.0.0.1}:`)).toBe(true);
    }
});

test('stores are only in a network without internet access', () => {
  for (const name of ['postgres', 'redis', 'kafka'])
    expect(compose.services[name]!.networks).toEqual(['data']);
  expect(compose.networks['data']).toEqual({ internal: true });
});

test("each service reads its own secrets, and only jobs read those of the databases' owner", () => {
  const readers = (volume: string) =>
    containers.filter(([, { volumes }]) => volumes?.some((one) => one.startsWith(`${volume}:`)));
  for (const { name } of services)
    expect(readers(`${name}-secrets`).map(([reader]) => reader)).toEqual([name, 'secrets']);
  expect(readers('owner-secrets').map(([reader]) => reader)).toEqual(['demo', 'secrets', 'migrate']);
});

test('only the profile demo starts the demo', () => {
  const optional = containers.filter(([, { profiles }]) => profiles);
  expect(optional).toEqual([['demo', expect.objectContaining({ profiles: ['demo'] })]]);
});

test('no environment variable contains a password', () => {
  for (const [, { environment = {} }] of containers)
    for (const name of Object.keys(environment))
      if (/PASSWORD|SECRET|DATABASE_URL|REDIS_URL/.test(name)) expect(name).toMatch(/_FILE$/);
});

test('.env.example lists every setting', () => {
  const settable = [...composeText.matchAll(/\$\{([A-Z_]+):-/g)].map(([, name]) => name!);
  const listed = [...read('.env.example').matchAll(/^#([A-Z_]+)=/gm)].map(([, name]) => name!);
  expect(listed.toSorted()).toEqual([...new Set(settable)].toSorted());
});
