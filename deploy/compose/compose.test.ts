import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { services } from '@content-platform/contract';
import { ROOT } from '../local/config.ts';
import { compose, composeText, edgeText, hostAccess, hostAccessText } from '../testing/compose.ts';

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const imagesText = read('deploy/compose/images.yml');
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
  expect(read('.dockerignore')).toMatch(/\n\*\*\/\*\.test\.ts\n\*\*\/testing\n\*\*\/proof\n$/);
  expect(read('deploy/Dockerfile')).not.toMatch(/npm (?!run |ci .*--omit=dev)/);
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

test('a PostgreSQL that is not ready yet is not taken for an incomplete setup', () => {
  expect(composeText).toMatch(/pg_isready -h 127\.0\.0\.1 -U postgres \|\| exit 1;/);
});

test('only the profile demo starts the demo', () => {
  const optional = containers.filter(([, { profiles }]) => profiles);
  expect(optional).toEqual([['demo', expect.objectContaining({ profiles: ['demo'] })]]);
});

test('no environment variable contains a password', () => {
  for (const [, { environment = {} }] of containers)
    for (const name of Object.keys(environment))
      if (/PASSWORD(?!_RESET_URL)|SECRET|DATABASE_URL|REDIS_URL|SMTP_URL/.test(name))
        expect(name).toMatch(/_FILE$/);
});

test('.env.example lists every setting', () => {
  const settable = [
    ...`${composeText}${hostAccessText}${edgeText}${imagesText}`.matchAll(/\$\{([A-Z_]+):[-+?]/g),
  ].map(([, name]) => name!);
  const listed = [...read('.env.example').matchAll(/^#([A-Z_]+)=/gm)].map(([, name]) => name!);
  expect(listed.toSorted()).toEqual([...new Set(settable)].toSorted());
});

test('edge.yml hardens Caddy, and Caddy checks every address that Docker gives to a gateway', () => {
  for (const line of ['read_only: true', 'cap_drop: [ALL]', 'no-new-privileges:true', "user: '1000:1000'"])
    expect(edgeText).toContain(line);
  expect(edgeText).toContain(".16/28'");
  const caddyfile = read('deploy/compose/Caddyfile');
  expect(caddyfile.match(/"request_id":"\{http\.error\.id\}"\}` 50[23]/g)).toHaveLength(2);
  const known = [...caddyfile.matchAll(/NETWORK\}\.(\d+):8080/g)].map(([, last]) => Number(last));
  expect(known).toEqual(Array.from({ length: 16 }, (_, index) => 16 + index));
  expect(edgeText).toContain("gateways: { ipv4_address: '${GATEWAY_NETWORK:-10.254.254}.2' }");
  expect(edgeText).toContain('TRUSTED_PROXIES: ${GATEWAY_NETWORK:-10.254.254}.2/32');
});

test('host-access.yml publishes PostgreSQL and Kafka alone, on loopback, outside the networks of other containers', () => {
  expect(Object.keys(hostAccess.services)).toEqual(['postgres', 'kafka']);
  for (const { ports = [], networks } of Object.values(hostAccess.services)) {
    expect(ports).toHaveLength(1);
    expect(ports[0]).toMatch(/^127\.0\.0\.1:/);
    expect(networks).toEqual(['host-access']);
  }
  expect(hostAccess.networks).toEqual({ 'host-access': null });
  expect(Object.keys(compose.networks)).not.toContain('host-access');
});

test('host-access.yml adds a listener to Kafka that needs the same login, and keeps the others', () => {
  const [before, added] = [compose, hostAccess].map(({ services }) => services['kafka']!.environment!) as [
    Record<string, string>,
    Record<string, string>,
  ];
  for (const name of ['LISTENERS', 'ADVERTISED_LISTENERS', 'LISTENER_SECURITY_PROTOCOL_MAP'])
    expect(added[`KAFKA_${name}`]!.startsWith(`${before[`KAFKA_${name}`]},HOST:`)).toBe(true);
  expect(added['KAFKA_LISTENER_SECURITY_PROTOCOL_MAP']).toMatch(/,HOST:SASL_PLAINTEXT$/);
  expect(added['KAFKA_LISTENER_NAME_HOST_SCRAM___SHA___512_SASL_JAAS_CONFIG']).toBe(
    before['KAFKA_LISTENER_NAME_CLIENTS_SCRAM___SHA___512_SASL_JAAS_CONFIG'],
  );
  expect(Object.keys(added)).toHaveLength(4);
  // The client connects to the advertised address, which must be the published one.
  const port = '${KAFKA_PORT:-9092}';
  expect(added['KAFKA_ADVERTISED_LISTENERS']!.endsWith(`,HOST://127.0.0.1:${port}`)).toBe(true);
  expect(hostAccess.services['kafka']!.ports).toEqual([`127.0.0.1:${port}:19092`]);
  expect(added['KAFKA_LISTENERS']).toMatch(/,HOST:\/\/:19092$/);
});
