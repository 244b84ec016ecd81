import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';

const root = new URL('../../', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, root), 'utf8');
const compose = read('docker-compose.yml');
/** Each service of the file with what it says. */
const described = new Map(
  compose
    .slice(compose.indexOf('\nservices:'), compose.indexOf('\nnetworks:'))
    .split(/\n {2}(?=[a-z-]+:\n)/)
    .slice(1)
    .map((text) => [text.slice(0, text.indexOf(':')), text] as const),
);

test('every container is guarded, and its memory and its number of processes have a limit', () => {
  expect(compose).toMatch(/^x-guarded: &guarded\n(?: {2}.*\n)*? {2}pids_limit: \d+\n/m);
  for (const [name, text] of described) {
    expect([name, text]).toEqual([name, expect.stringMatching(/<<: \*(guarded|process)/)]);
    if (!text.includes('<<: *process'))
      expect([name, text]).toEqual([name, expect.stringContaining('mem_limit:')]);
  }
});

test('what is published at another port is called by it', () => {
  const given = [...compose.matchAll(/^ +((?:PUBLIC|GRAFANA|JAEGER)_URL): (.*)$/gm)].map(
    ([, ...pair]) => pair,
  );
  expect(given).toEqual([
    ['PUBLIC_URL', '${PUBLIC_URL:-http://127.0.0.1:${GATEWAY_PORT:-8080}}'],
    ['GRAFANA_URL', '${GRAFANA_URL:-http://127.0.0.1:${GRAFANA_PORT:-3000}}'],
    ['JAEGER_URL', '${JAEGER_URL:-http://127.0.0.1:${JAEGER_PORT:-16686}}'],
  ]);
});

test('no test, and nothing that tests need, gets into an image', () => {
  const left = read('.dockerignore').split('\n').slice(-5);
  expect(left).toEqual(expect.arrayContaining(['**/*.test.ts', '**/testing', '**/proof']));
});

test('only what people look at is published, on loopback unless somebody says otherwise', () => {
  const published = [...described].filter(([, text]) => text.includes('ports:'));
  expect(published.map(([name]) => name)).toEqual([
    'gateway',
    'prometheus',
    'alertmanager',
    'grafana',
    'jaeger',
  ]);
  for (const [, text] of published) expect(text).toContain("ports: ['${BIND_ADDRESS:-127.0.0.1}:");
});

test('the stores are in a network that has no way out, and in no other', () => {
  for (const name of ['postgres', 'redis', 'kafka'])
    expect(described.get(name)).toContain('networks: [data]');
  expect(compose).toMatch(/\n {2}data:\n {4}internal: true/);
});

test('the demo is brought by its profile alone', () => {
  expect(described.get('demo')).toContain('profiles: [demo]');
  expect([...described].filter(([, text]) => text.includes('profiles:'))).toHaveLength(1);
});

test('no password stands in an environment', () => {
  for (const [, name] of compose.matchAll(/^ +([A-Z_]*(?:PASSWORD|SECRET|DATABASE_URL|REDIS_URL)[A-Z_]*):/gm))
    expect(name).toMatch(/_FILE$/);
});

test('whatever can be set is in .env.example', () => {
  const settable = [...compose.matchAll(/\$\{([A-Z_]+):-/g)].map(([, name]) => name!);
  const listed = [...read('.env.example').matchAll(/^#([A-Z_]+)=/gm)].map(([, name]) => name!);
  expect(listed.toSorted()).toEqual([...new Set(settable)].toSorted());
});
