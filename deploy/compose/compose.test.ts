import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../local/config.ts';
import { compose, composeText } from '../testing/compose.ts';

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const containers = Object.entries(compose.services);

test.each(containers)('%s is guarded, and its memory and processes have a limit', (name, one) => {
  expect(one).toMatchObject({
    // Kafka's image writes its configuration at the start.
    read_only: name !== 'kafka',
    security_opt: ['no-new-privileges:true'],
    cap_drop: ['ALL'],
    pids_limit: expect.any(Number),
    mem_limit: expect.stringMatching(/^\d+[mg]$/),
  });
});

test('what is published at another port is called by it', () => {
  const settings = containers.flatMap(([, { environment = {} }]) => Object.entries(environment));
  const given = settings.filter(([name]) => /^(PUBLIC|GRAFANA|JAEGER)_URL$/.test(name));
  expect(Object.fromEntries(given)).toEqual({
    PUBLIC_URL: '${PUBLIC_URL:-http://127.0.0.1:${GATEWAY_PORT:-8080}}',
    GRAFANA_URL: '${GRAFANA_URL:-http://127.0.0.1:${GRAFANA_PORT:-3000}}',
    JAEGER_URL: '${JAEGER_URL:-http://127.0.0.1:${JAEGER_PORT:-16686}}',
  });
});

test('no test, and nothing that tests need, gets into an image', () => {
  const left = read('.dockerignore').split('\n').slice(-5);
  expect(left).toEqual(expect.arrayContaining(['**/*.test.ts', '**/testing', '**/proof']));
});

test('only what people look at is published, on loopback unless somebody says otherwise', () => {
  const published = containers.filter(([, { ports }]) => ports);
  const names = ['gateway', 'prometheus', 'alertmanager', 'grafana', 'jaeger'];
  expect(published.map(([name]) => name)).toEqual(names);
  for (const [, { ports = [] }] of published)
    for (const port of ports) expect(port).toMatch(/^\$\{BIND_ADDRESS:-127\.0\.0\.1\}:/);
});

test('the stores are in a network that has no way out, and in no other', () => {
  for (const name of ['postgres', 'redis', 'kafka'])
    expect(compose.services[name]!.networks).toEqual(['data']);
  expect(compose.networks['data']).toEqual({ internal: true });
});

test('the demo is brought by its profile alone', () => {
  const optional = containers.filter(([, { profiles }]) => profiles);
  expect(optional).toEqual([['demo', expect.objectContaining({ profiles: ['demo'] })]]);
});

test('no password stands in an environment', () => {
  for (const [, { environment = {} }] of containers)
    for (const name of Object.keys(environment))
      if (/PASSWORD|SECRET|DATABASE_URL|REDIS_URL/.test(name)) expect(name).toMatch(/_FILE$/);
});

test('whatever can be set is in .env.example', () => {
  const settable = [...composeText.matchAll(/\$\{([A-Z_]+):-/g)].map(([, name]) => name!);
  const listed = [...read('.env.example').matchAll(/^#([A-Z_]+)=/gm)].map(([, name]) => name!);
  expect(listed.toSorted()).toEqual([...new Set(settable)].toSorted());
});
