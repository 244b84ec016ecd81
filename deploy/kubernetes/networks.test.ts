import { describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { processes } from '../render/configuration.ts';
import { compose } from '../testing/compose.ts';
import { internalPortOffset, services } from '@content-platform/contract';
import { reaches, type Peer } from './testing/network-policies.ts';
import { render } from './testing/render.ts';
import { allOf, environmentOf, find, podOf } from './testing/resources.ts';

const networksOf = (name: string) => compose.services[name]!.networks;

const resources = render(join(import.meta.dirname, 'overlays', 'production'));
const policies = allOf(resources, 'NetworkPolicy');
const names = services.map(({ name }) => name);
const deploymentOf = (name: string) => find(resources, 'Deployment', name)!;

const peerOf = (name: string): Peer => {
  const { labels, container } = podOf(deploymentOf(name));
  const ports = container.ports!.map((port) => [port.name!, port.containerPort] as const);
  return { pod: labels, ports: Object.fromEntries(ports) };
};
const peers = new Map(names.map((name) => [name, peerOf(name)] as const));
const elsewhere = (...labels: string[]): Peer => ({
  pod: { app: 'any' },
  namespace: Object.fromEntries(labels.map((label) => [`content-platform/${label}`, 'true'])),
});
const can = (from: Peer, to: Peer, port: number) => reaches(policies, from, to, port);

/** Every allowed connection between services, as `from to:port`. */
const reached = (from: Peer, name = 'it') =>
  names
    .filter((to) => to !== name)
    .flatMap((to) =>
      Object.values(peers.get(to)!.ports!)
        .filter((port) => can(from, peers.get(to)!, port))
        .map((port) => `${name} ${to}:${port}`),
    );

/** The connections that the settings of a service need, as `from to:port`. */
function neededBy(name: string): string[] {
  const values = Object.values(environmentOf(deploymentOf(name), resources));
  const addresses = values.flatMap((value) => value.split(/,\s*/)).filter((value) => URL.canParse(value));
  const needed = addresses.flatMap((address) => {
    const { hostname, port } = new URL(address);
    const service = find(resources, 'Service', hostname);
    if (!service) return [];
    expect(service.spec!.ports!.map((one) => one.port)).toContain(Number(port));
    const to = service.spec!.selector!['app.kubernetes.io/name']!;
    // The gateway probes the services to which it forwards.
    const ports = name === 'gateway' ? [Number(port), Number(port) + internalPortOffset] : [Number(port)];
    return ports.filter((one) => one < 10_000).map((one) => `${name} ${to}:${one}`);
  });
  return needed.filter((one) => !one.startsWith(`${name} ${name}:`));
}

const unique = (list: string[]) => [...new Set(list)].toSorted();

test('one policy selects every pod and allows nothing', () => {
  const denyAll = policies.find(({ spec }) => JSON.stringify(spec!.podSelector) === '{}' && !spec!.egress);
  expect(denyAll!.spec).toEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
});

test.each(names)('inside: %s reaches exactly the services in its settings', (name) => {
  expect(unique(reached(peers.get(name)!, name))).toEqual(unique(neededBy(name)));
});

test('connections that are allowed here are allowed in Compose too', () => {
  for (const from of names)
    for (const to of names)
      if (reached(peers.get(from)!, from).some((one) => one.startsWith(`${from} ${to}:`)))
        expect([from, to, networksOf(from).filter((network) => networksOf(to).includes(network))]).toEqual([
          from,
          to,
          expect.arrayContaining(['inside']),
        ]);
});

describe('from outside', () => {
  test('edge: the ingress reaches the gateway only, as in Compose', () => {
    expect(names.filter((name) => networksOf(name).includes('edge'))).toEqual(['gateway']);
    expect(reached(elsewhere('edge'))).toEqual(['it gateway:8080']);
  });

  test('Prometheus reaches internal ports only', () => {
    expect(networksOf('prometheus')).toContain('inside');
    const internal = services.map(({ name, port }) => `it ${name}:${port + internalPortOffset}`).toSorted();
    expect(reached(elsewhere('monitoring')).toSorted()).toEqual(internal);
  });

  test('no other connection from outside is allowed', () => {
    for (const stranger of [elsewhere(), elsewhere('data'), { address: '192.0.2.1' }, { pod: {} }])
      expect(reached(stranger)).toEqual([]);
  });
});

describe('to outside', () => {
  const kubeDns: Peer = {
    pod: { 'k8s-app': 'kube-dns' },
    namespace: { 'kubernetes.io/metadata.name': 'kube-system' },
  };
  const has = (name: string, setting: RegExp) =>
    Object.keys(processes[name]!).some((known) => setting.test(known));

  test.each(names)('%s reaches DNS and the trace collector', (name) => {
    const peer = peers.get(name)!;
    expect(can(peer, kubeDns, 53)).toBe(true);
    expect(can(peer, { address: '169.254.20.10' }, 53)).toBe(true);
    expect(can(peer, { ...kubeDns, pod: {} }, 53)).toBe(false);
    expect(can(peer, elsewhere('monitoring'), 4318)).toBe(true);
    expect(can(peer, elsewhere(), 4318)).toBe(false);
  });

  test.each([
    ['postgres', /DATABASE_URL/, [5432]],
    ['redis', /REDIS_URL/, [6379, 26379]],
    ['kafka', /KAFKA_BROKERS/, [9092, 9093]],
  ])('data: only services with a setting for %s reach it', (_, setting, ports) => {
    for (const port of ports) {
      const from = names.filter((name) => can(peers.get(name)!, elsewhere('data'), port));
      expect(from).toEqual(names.filter((name) => has(name, setting)));
      for (const name of from) expect(networksOf(name)).toContain('data');
      for (const name of names) expect(can(peers.get(name)!, elsewhere(), port)).toBe(false);
    }
  });

  test('media-upload reaches S3, auth an identity provider and a mail server; no service reaches the metadata service of a cloud', () => {
    const from = names.filter((name) => can(peers.get(name)!, { address: '192.0.2.1' }, 443));
    expect(from).toEqual(names.filter((name) => has(name, /^S3_|^IDENTITY_/)));
    for (const port of [465, 587])
      expect(names.filter((name) => can(peers.get(name)!, { address: '192.0.2.1' }, port))).toEqual(
        names.filter((name) => has(name, /^SMTP_/)),
      );
    for (const name of names) {
      expect(can(peers.get(name)!, { address: '169.254.169.254' }, 443)).toBe(false);
      expect(can(peers.get(name)!, { address: '192.0.2.1' }, 80)).toBe(false);
    }
  });
});
