import { describe, expect, test } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { readConfig } from '@content-platform/chassis';
import { cacheInvalidation, internalPortOffset, serviceOf, services } from '@content-platform/contract';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { processes } from '../render/configuration.ts';
import { ROOT } from '../local/config.ts';
import { render } from './testing/render.ts';
import { allOf, environmentOf, find, podOf } from './testing/resources.ts';

const dockerfile = readFileSync(join(ROOT, 'deploy', 'Dockerfile'), 'utf8');
const page = readFileSync(join(ROOT, 'docs', 'operations', 'kubernetes.md'), 'utf8');
const names = services.map(({ name }) => name);

const base = render(join(import.meta.dirname, 'base'));
const production = render(join(import.meta.dirname, 'overlays', 'production'));

describe.each([
  ['base', base],
  ['production', production],
])('%s', (_, resources) => {
  const deployments = allOf(resources, 'Deployment');

  test('has every service, in a namespace that enforces restricted pods', () => {
    expect(deployments.map(({ metadata }) => metadata!.name).toSorted()).toEqual(names.toSorted());
    const [namespace, ...others] = allOf(resources, 'Namespace');
    expect(others).toEqual([]);
    for (const mode of ['enforce', 'warn', 'audit'])
      expect(namespace!.metadata!.labels![`pod-security.kubernetes.io/${mode}`]).toBe('restricted');
    for (const { kind, metadata } of resources)
      if (kind !== 'Namespace') expect(metadata.namespace).toBe(namespace!.metadata!.name);
  });

  describe.each(services)('$name', ({ name, port, memoryMb, stopSeconds, isSingle, exportsAs }) => {
    const deployment = find(resources, 'Deployment', name)!;
    const { labels, spec, container, migration } = podOf(deployment);
    const ownLabel = { 'app.kubernetes.io/name': name };

    test('has labels of its own, and in production an image with a version', () => {
      expect(deployment.spec!.selector.matchLabels).toEqual(ownLabel);
      const mark = exportsAs && { 'content-platform/exports': 'true' };
      expect(labels).toEqual({ ...ownLabel, 'app.kubernetes.io/part-of': 'content-platform', ...mark });
      expect(container.image).toMatch(
        resources === base
          ? new RegExp(`^content-platform/${name}$`)
          : new RegExp(`^[a-z.]+/content-platform/${name}:\\d+\\.\\d+\\.\\d+$`),
      );
    });

    test('resolves to each of its processes by its name', () => {
      const both = [
        { name: 'public', port, targetPort: 'public' },
        { name: 'internal', port: port + internalPortOffset, targetPort: 'internal' },
      ];
      const seen = allOf(resources, 'Service')
        .filter(({ spec: service }) => service!.selector!['app.kubernetes.io/name'] === name)
        .map(({ metadata, spec: { clusterIP, ports } = {} }) => [metadata!.name, clusterIP, ports]);
      // One address for the ingress.
      const servicesOfGateway = [
        ['gateway', undefined, both.slice(0, 1)],
        ['gateway-processes', 'None', both.slice(1)],
      ];
      expect(seen).toEqual(name === 'gateway' ? servicesOfGateway : [[name, 'None', both]]);
    });

    test('has probes and a grace period that fit its start and its longest request', () => {
      expect(container.livenessProbe!.httpGet!.path).toBe('/health/live');
      expect(container.readinessProbe!.httpGet!.path).toBe('/health/ready');
      // Readiness waits up to one second for its stores.
      expect(container.readinessProbe!.timeoutSeconds).toBeGreaterThan(1);
      const { failureThreshold, periodSeconds } = container.startupProbe!;
      expect(failureThreshold! * periodSeconds!).toBeGreaterThanOrEqual(60);
      const before = container.lifecycle?.preStop?.sleep?.seconds ?? 0;
      // On drained nodes a replacement is new. The gateway knows it when DNS no longer caches the names (30 s).
      expect(before).toBe(isSingle ? 0 : name === 'gateway' ? 5 : 35);
      expect(spec.terminationGracePeriodSeconds! - before).toBe(stopSeconds);
    });

    test('stops only after the gateway knows its replacement, unless only one may run', () => {
      expect(deployment.spec!.strategy!.rollingUpdate).toEqual(
        isSingle ? { maxUnavailable: 1, maxSurge: '0%' } : { maxUnavailable: 0, maxSurge: '25%' },
      );
      // kubeadm's CoreDNS caches names for 30 s. The gateway resolves and probes every second.
      expect(deployment.spec!.minReadySeconds).toBeGreaterThanOrEqual(35);
    });

    test('runs with least privileges', () => {
      expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      expect([spec.hostNetwork, spec.hostPID, spec.hostIPC]).toEqual([undefined, undefined, undefined]);
      expect(spec.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      for (const { securityContext } of [container, migration])
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
    });

    test("only the migration gets the owner's credentials", () => {
      expect(migration.image).toBe(container.image);
      const mounted = migration.volumeMounts!.map((mount) => [mount.name, mount.mountPath, mount.subPath]);
      const key = serviceOf(name).schema ? 'database-url' : 'logs-database-url';
      expect(mounted).toEqual([
        ['owner', '/run/secrets/owner', undefined],
        [name, `/run/secrets/roles/${name}`, key],
      ]);
      const files = migration.env!.map(({ name: setting, value }) => [setting, value]);
      expect(files).toEqual([
        ...(serviceOf(name).schema ? [['DATABASE_URL_FILE', '/run/secrets/owner/database-url']] : []),
        ['LOGS_DATABASE_URL_FILE', '/run/secrets/owner/logs-database-url'],
      ]);
      const secrets = spec.volumes!.flatMap(({ secret }) => secret?.secretName ?? []);
      const ofOthers = names.filter((other) => other !== name && secrets.includes(other));
      expect(ofOthers).toEqual([]);
    });

    test('writes to limited volumes only and reads secrets as files', () => {
      const mounts = new Map(container.volumeMounts!.map((mount) => [mount.name, mount] as const));
      expect([...mounts.keys(), 'owner'].toSorted()).toEqual(
        spec.volumes!.map((volume) => volume.name).toSorted(),
      );
      expect(mounts.get('tmp')?.mountPath).toBe('/tmp');
      for (const { name: volume, emptyDir, secret } of spec.volumes!) {
        if (emptyDir) expect(emptyDir.sizeLimit).toMatch(/^\d+[MG]i$/);
        else expect(secret!.secretName).toBe(volume);
        if (secret && volume !== 'owner')
          expect(mounts.get(volume)).toMatchObject({ mountPath: `/run/secrets/${volume}`, readOnly: true });
      }
      const { MEDIA_FOLDER: folder } = environmentOf(deployment, resources);
      if (folder) expect(mounts.get('files')?.mountPath).toBe(folder);
    });

    test('reserves all of its memory and a share of a CPU', () => {
      const { requests, limits } = container.resources!;
      expect([requests!['memory'], limits!['memory']]).toEqual([`${memoryMb}Mi`, `${memoryMb}Mi`]);
      expect(requests!['cpu']).toMatch(/^\d+m?$/);
      // media-upload starts one worker process for each CPU that it sees.
      expect(limits!['cpu']).toBe(name === 'media-upload' ? '2' : undefined);
    });

    test('scales between limits and loses at most one pod to voluntary disruptions', () => {
      const { minReplicas, maxReplicas } = find(resources, 'HorizontalPodAutoscaler', name)?.spec ?? {};
      const budget = find(resources, 'PodDisruptionBudget', name)?.spec;
      // A disruption budget for a single pod would block draining its node, or have no effect.
      if (isSingle) {
        expect([deployment.spec!.replicas, maxReplicas, budget]).toEqual([1, undefined, undefined]);
        return;
      }
      expect(deployment.spec!.replicas).toBeUndefined();
      expect(minReplicas).toBeGreaterThanOrEqual(2);
      expect(maxReplicas).toBeGreaterThan(minReplicas!);
      expect(budget).toMatchObject({ maxUnavailable: 1, selector: { matchLabels: ownLabel } });
      if (name === 'content-cache') expect(maxReplicas).toBeLessThanOrEqual(cacheInvalidation.partitions);
    });

    test('gets only known settings, and secrets only as existing files', () => {
      const known = Object.keys(processes[name]!);
      expect((container.env ?? []).filter(({ valueFrom }) => valueFrom)).toEqual([]);
      for (const [setting, value] of Object.entries(environmentOf(deployment, resources))) {
        const [, secret] = /^(.*)_FILE$/.exec(setting) ?? [];
        expect(known).toContain(secret ?? setting);
        if (!secret) {
          expect(setting).not.toMatch(/(DATABASE|REDIS|SMTP)_URL$|(SECRETS?|PASSWORD|ACCESS_KEY)$/);
          continue;
        }
        const [, volume, key] = /^\/run\/secrets\/([a-z0-9-]+)\/([a-z-]+)$/.exec(value)!;
        if (!new RegExp(`\\| *${volume} *\\|.*\`${key}\``).test(page))
          throw new Error(`docs/operations/kubernetes.md: the secret ${volume} has no key ${key}`);
      }
    });
  });
});

const samples: Record<string, string> = {
  DATABASE_URL: 'postgres://platform:x@postgres.data:5432/platform',
  LOGS_DATABASE_URL: 'postgres://platform:x@postgres.data:5432/logs',
  REDIS_URL: 'redis://:x@redis.data:6379',
  SERVICE_SECRETS: `devices:${'x'.repeat(32)}`,
  SMTP_URL: 'smtp://user:x@mail.example.com:587',
};

test('the production example trusts only a network that exists in no installation', () => {
  const gateway = environmentOf(find(production, 'Deployment', 'gateway')!, production);
  // RFC 5737 reserves it for documentation.
  expect(gateway).toMatchObject({ TRUSTED_PROXIES: '192.0.2.0/24' });
});

test.each(names)('in production %s has every required setting', (name) => {
  const folder = temporaryFolder();
  const [, host] = /\bHOST=(\S+)/.exec(dockerfile)!;
  const given = environmentOf(find(production, 'Deployment', name)!, production);
  const environment: Record<string, string> = { HOST: host! };
  for (const [setting, value] of Object.entries(given)) {
    const [, secret] = /^(.*)_FILE$/.exec(setting) ?? [];
    environment[setting] = secret ? join(folder, setting) : value;
    if (secret) writeFileSync(join(folder, setting), samples[secret] ?? 'x'.repeat(32));
  }
  const config = readConfig(processes[name]!, environment);
  for (const [setting, value] of Object.entries(environment))
    if (setting.endsWith('_FILE'))
      expect(String(config[setting.slice(0, -5)])).toBe(readFileSync(value, 'utf8'));
  // Settings without a value default to this machine.
  expect(JSON.stringify(config)).not.toContain('127.0.0.1');
  const s3 = Object.entries(config).filter(([setting]) => setting.startsWith('S3_'));
  for (const [setting, value] of s3)
    if (setting !== 'S3_ENDPOINT') expect([setting, value]).not.toContain(undefined);
});

test('the ingress leads to the gateway', () => {
  const [ingress, ...others] = allOf(production, 'Ingress');
  expect(others).toEqual([]);
  const [rule] = ingress!.spec!.rules!;
  const { PUBLIC_URL: url } = environmentOf(find(production, 'Deployment', 'gateway')!, production);
  expect(rule!.host).toBe(new URL(url!).hostname);
  expect(rule!.http!.paths.map(({ backend }) => backend.service)).toEqual([
    { name: 'gateway', port: { name: 'public' } },
  ]);
});

test('Prometheus finds each process and labels it with its service', () => {
  const text = readFileSync(join(ROOT, 'deploy', 'prometheus', 'prometheus.kubernetes.yml'), 'utf8');
  const [job, ...others] = (parse(text) as { scrape_configs: ScrapeConfig[] }).scrape_configs;
  expect(others).toEqual([]);
  const namespace = allOf(base, 'Namespace')[0]!.metadata!.name!;
  expect(job).toMatchObject({
    job_name: 'content-platform',
    honor_labels: true,
    scrape_interval: '15s',
    kubernetes_sd_configs: [{ role: 'pod', namespaces: { names: [namespace] } }],
  });
  const [keep, rename] = job!.relabel_configs;
  expect(job!.relabel_configs).toMatchObject([{ action: 'keep' }, { target_label: 'service' }]);
  for (const deployment of allOf(production, 'Deployment')) {
    const meta: Record<string, string> = {
      __meta_kubernetes_pod_container_port_name: 'internal',
      __meta_kubernetes_pod_phase: 'Running',
    };
    for (const [label, value] of Object.entries(podOf(deployment).labels))
      meta[`__meta_kubernetes_pod_label_${label.replaceAll(/\W/g, '_')}`] = value;
    const valueOf = ({ source_labels: sources }: Relabeling) => sources.map((one) => meta[one]).join(';');
    expect([valueOf(keep!), valueOf(rename!)]).toEqual([keep!.regex, deployment.metadata!.name]);
  }
});

interface Relabeling {
  source_labels: string[];
  regex?: string;
  target_label?: string;
}

interface ScrapeConfig {
  relabel_configs: Relabeling[];
}
