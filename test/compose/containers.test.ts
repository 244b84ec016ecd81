import { beforeAll, expect, test } from '@jest/globals';
import { services } from '@content-platform/contract';
import { compose, docker } from './docker.ts';

interface Container {
  Name: string;
  Image: string;
  Config: { Labels: Record<string, string> };
  RestartCount: number;
  State: { Running: boolean; ExitCode: number; OOMKilled: boolean; Health?: { Status: string } };
}

let containers: Container[];
let named: (service: string) => Container;
beforeAll(async () => {
  const ids = (await compose('ps', '--all', '-q')).split('\n');
  containers = JSON.parse(await docker(['inspect', ...ids])) as Container[];
  // The container number is irrelevant, because releases change it.
  named = (service) =>
    containers.find(({ Config }) => Config.Labels['com.docker.compose.service'] === service)!;
});

test('every container is healthy, without restarts and OOM kills', () => {
  for (const { Name, RestartCount, State } of containers) {
    expect([Name, RestartCount, State.OOMKilled]).toEqual([Name, 0, false]);
    if (State.Running && State.Health) expect([Name, State.Health.Status]).toEqual([Name, 'healthy']);
    // The secrets and migrations jobs have finished; the demo was stopped.
    if (!State.Running)
      expect([Name, State.ExitCode]).toEqual([
        expect.stringMatching(/-(secrets|migrate|kafka-users|demo)-1$/),
        0,
      ]);
  }
});

test('a stack with demo data refuses addresses other than loopback', () =>
  expect(compose('run', '--rm', '--no-deps', '--env', 'BIND_ADDRESS=0.0.0.0', 'secrets')).rejects.toThrow(
    'This stack has demo data',
  ));

test('no process runs as root', async () => {
  const running = containers.filter(({ State }) => State.Running).map(({ Name }) => Name);
  for (const name of running.filter((one) => !one.endsWith('-jaeger-1')))
    expect([name, await docker(['exec', name.slice(1), 'id', '-u'])]).not.toEqual([name, '0']);
  // Jaeger's image has no shell.
  expect(await docker(['inspect', '--format', '{{.Config.User}}', named('jaeger').Name])).toMatch(/^[1-9]/);
});

test("a process of a service's user, such as an image decoder, cannot read the service's memory or environment", async () => {
  const container = named('media-upload').Name.slice(1);
  for (const path of ['/proc/1/environ', '/proc/1/mem'])
    await expect(docker(['exec', container, 'head', '-c1', path])).rejects.toThrow('Permission denied');
});

test('when memory runs out, the kernel may end an admin command before auth', () =>
  compose('exec', '-T', 'auth', 'node', '--eval', "fs.writeFileSync('/proc/self/oom_score_adj', '1000')"));

test('a process can read the compiled modules of its image', () =>
  compose('exec', '-T', 'auth', 'sh', '-c', 'cat compile-cache/*/* > /dev/null'));

test('images and the configurations of containers contain no secret', async () => {
  const files: [string, string[]][] = [
    ['auth', ['/run/secrets/database-url', '/run/secrets/redis-url', '/run/secrets/key-secret']],
    [
      'postgres',
      ['superuser-password', 'platform-password', 'grafana-password'].map((name) => `/run/secrets/${name}`),
    ],
    ['grafana', ['/etc/grafana/secrets/admin-password']],
  ];
  const secrets: string[] = [];
  for (const [service, paths] of files)
    for (const path of paths) {
      const value = await compose('exec', '-T', service, 'cat', path);
      secrets.push(value.includes('://') ? new URL(value).password : value);
    }
  expect(secrets).toHaveLength(7);
  const images = [...new Set(containers.map(({ Image }) => Image))];
  const histories = images.map((image) =>
    docker(['history', '--no-trunc', '--format', '{{.CreatedBy}}', image]),
  );
  const visible = JSON.stringify([
    containers,
    await Promise.all(histories),
    await docker(['image', 'inspect', ...images]),
  ]);
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(20);
    expect(visible.includes(secret)).toBe(false);
  }
});

test('the network of the stores has no internet access', async () => {
  const image = 'node:24.21.0-bookworm-slim';
  const run = (net: string) =>
    docker(['run', '--rm', '--network', net, image, 'cat', '/proc/net/route']).then((routes) =>
      routes.split('\n').some((line) => line.split('\t')[1] === '00000000'),
    );
  expect(await run(`${process.env['COMPOSE_PROJECT_NAME']}_data`)).toBe(false);
  expect(await run(`${process.env['COMPOSE_PROJECT_NAME']}_inside`)).toBe(true);
});

test('no image exceeds its size limit', async () => {
  const sizes = new Map<string, number>();
  for (const { name } of services) {
    const size = Number(await docker(['image', 'inspect', '--format', '{{.Size}}', named(name).Image]));
    sizes.set(name, Math.round(size / 1e6));
    expect([name, size < (name === 'media-upload' ? 450e6 : 400e6)]).toEqual([name, true]);
  }
  console.log('images, in MB:', Object.fromEntries(sizes));
});
