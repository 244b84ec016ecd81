import type { HorizontalPodAutoscaler } from 'kubernetes-types/autoscaling/v2.d.ts';
import type { Deployment } from 'kubernetes-types/apps/v1.d.ts';
import type { ConfigMap, Namespace, Service } from 'kubernetes-types/core/v1.d.ts';
import type { Ingress, NetworkPolicy } from 'kubernetes-types/networking/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';

interface Kinds {
  ConfigMap: ConfigMap;
  Deployment: Deployment;
  HorizontalPodAutoscaler: HorizontalPodAutoscaler;
  Ingress: Ingress;
  Namespace: Namespace;
  NetworkPolicy: NetworkPolicy;
  PodDisruptionBudget: PodDisruptionBudget;
  Service: Service;
}
type Kind = keyof Kinds;

export interface Resource {
  apiVersion: string;
  kind: Kind;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
}

export function allOf<K extends Kind>(resources: readonly Resource[], kind: K): Kinds[K][] {
  return resources.filter((resource) => resource.kind === kind) as Kinds[K][];
}

export function find<K extends Kind>(resources: readonly Resource[], kind: K, name: string) {
  return allOf(resources, kind).find(({ metadata }) => metadata?.name === name);
}

/** The pod template of a Deployment, with its labels, its process and the container that migrates before. */
export function podOf(deployment: Deployment) {
  const { metadata, spec } = deployment.spec!.template;
  if (spec!.containers.length !== 1) throw new Error(`${deployment.metadata?.name} has several containers`);
  const [migration, ...others] = spec!.initContainers ?? [];
  if (!migration || others.length > 0) throw new Error(`${deployment.metadata?.name} has not one migration`);
  return { labels: metadata?.labels ?? {}, spec: spec!, container: spec!.containers[0]!, migration };
}

/** The environment of a Deployment's process: ConfigMaps first, then `env`, which wins. */
export function environmentOf(deployment: Deployment, resources: readonly Resource[]) {
  const { container } = podOf(deployment);
  const maps = (container.envFrom ?? []).map(({ configMapRef }) => {
    const map = find(resources, 'ConfigMap', configMapRef!.name!);
    if (!map && !configMapRef!.optional) throw new Error(`there is no map ${configMapRef!.name}`);
    return map?.data ?? {};
  });
  const own = Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value ?? '']));
  return Object.assign({}, ...maps, own) as Record<string, string>;
}
