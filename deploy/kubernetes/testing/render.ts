import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import type { Resource } from './resources.ts';

interface Kustomization {
  namespace?: string;
  resources?: string[];
  images?: { name: string; newName: string; newTag: string }[];
  configMapGenerator?: { name: string; literals?: string[] }[];
  patches?: { path: string; target?: Target }[];
}

interface Target {
  kind: string;
  name?: string;
}

type Tree = Record<string, unknown>;
const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isNamed = (value: unknown): value is Tree[] => Array.isArray(value) && value.every((one) => one?.name);

/** Merges one value into another; lists of named items are merged by name. */
function merge(under: unknown, over: unknown): unknown {
  if (isTree(under) && isTree(over)) {
    const keys = [...new Set([...Object.keys(under), ...Object.keys(over)])];
    return Object.fromEntries(
      keys.map((key) => [key, key in over ? merge(under[key], over[key]) : under[key]]),
    );
  }
  if (!isNamed(under) || !isNamed(over)) return over;
  const byName = (list: Tree[]) => Object.fromEntries(list.map((one) => [one['name'], one]));
  return Object.values(merge(byName(under), byName(over)) as Tree);
}

const documents = (file: string) =>
  parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as Resource);

function patch(resources: Resource[], over: Resource, target: Target | undefined): Resource[] {
  const { name, ...metadata } = over.metadata;
  const meant = target ?? { kind: over.kind, name: name! };
  const isMeant = (resource: Resource) =>
    resource.kind === meant.kind && (meant.name === undefined || resource.metadata.name === meant.name);
  return resources.map((resource) =>
    isMeant(resource) ? merge(resource, target ? { ...over, metadata } : over) : resource,
  ) as Resource[];
}

function withSettings(resources: Resource[], name: string, literals: string[]): Resource[] {
  const data = Object.fromEntries(literals.map((text) => text.split(/=(.*)/s).slice(0, 2)));
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data } as Resource;
  const isThere = resources.some((one) => one.kind === 'ConfigMap' && one.metadata.name === name);
  return isThere ? patch(resources, map, undefined) : [...resources, map];
}

function withImages(resource: Resource, images: NonNullable<Kustomization['images']>): Resource {
  const text = JSON.stringify(resource);
  return JSON.parse(
    images.reduce(
      (changed, { name, newName, newTag }) =>
        changed.replaceAll(`"image":"${name}"`, `"image":"${newName}:${newTag}"`),
      text,
    ),
  ) as Resource;
}

/**
 * Renders a folder like `kubectl kustomize`, limited to the features that our folders use. Generated maps keep their
 * names. Tests use it on machines without kustomize; if kustomize is installed, a test compares the results.
 */
export function render(folder: string): Resource[] {
  const file = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')) as Kustomization;
  let resources = (file.resources ?? []).flatMap((path) =>
    statSync(join(folder, path)).isDirectory() ? render(join(folder, path)) : documents(join(folder, path)),
  );
  for (const { name, literals = [] } of file.configMapGenerator ?? [])
    resources = withSettings(resources, name, literals);
  for (const { path, target } of file.patches ?? [])
    for (const over of documents(join(folder, path))) resources = patch(resources, over, target);
  const { namespace } = file;
  if (namespace)
    for (const { kind, metadata } of resources) if (kind !== 'Namespace') metadata.namespace = namespace;
  return resources.map((resource) => withImages(resource, file.images ?? []));
}
