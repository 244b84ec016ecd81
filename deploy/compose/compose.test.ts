import { expect, test } from '@jest/globals';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { SERVICES } from '../local/services.ts';

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

test.each(SERVICES.map(({ name, offset }) => [name, 8080 + offset] as const))(
  '%s is there, made of the one Dockerfile, on its usual port',
  (name, port) => {
    expect(described.get(name)).toContain(`args: { SERVICE: ${name} }`);
    expect(described.get(name)).toMatch(new RegExp(`PORT: ${port}\\b`));
  },
);

test('every container is guarded, and its memory has a limit', () => {
  for (const [name, text] of described) {
    expect([name, text]).toEqual([name, expect.stringMatching(/<<: \*(guarded|process)/)]);
    if (name !== 'secrets' && !text.includes('<<: *process'))
      expect([name, text]).toEqual([name, expect.stringContaining('mem_limit:')]);
  }
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

test('the Dockerfile knows every package, so that a change of one installs anew', () => {
  const packages = [
    'gateway',
    ...readdirSync(new URL('services', root)).map((name) => `services/${name}`),
  ].filter(
    (folder) =>
      statSync(new URL(folder, root)).isDirectory() && existsSync(new URL(`${folder}/package.json`, root)),
  );
  const copied = [...read('deploy/Dockerfile').matchAll(/^COPY (\S+)\/package\.json \1\/$/gm)].map(
    ([, name]) => name!,
  );
  expect(copied.toSorted()).toEqual(packages.toSorted());
});
