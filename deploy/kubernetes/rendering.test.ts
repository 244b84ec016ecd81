import { expect, test } from '@jest/globals';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { DOWNLOADS, ROOT } from '../local/config.ts';
import { onPath, runCommand } from '../local/run-command.ts';
import { render } from './testing/render.ts';
import type { Resource } from './testing/resources.ts';

const folders = ['base', 'overlays/production'].map((name) => join(import.meta.dirname, name));
const typesOf = (apiVersion: string) =>
  apiVersion === 'v1' ? 'core/v1' : apiVersion.replace('.k8s.io/', '/');

test('manifests have no unknown field and no required field is missing', async () => {
  const resources = folders.flatMap((folder) => render(folder));
  const lines = resources.map((resource, index) => {
    const type = `import('kubernetes-types/${typesOf(resource.apiVersion)}').${resource.kind}`;
    return `export const ${resource.kind}${index}: ${type} = ${JSON.stringify(resource)};\n`;
  });
  // Within the repository, so that tsc finds the types.
  const draft = join(DOWNLOADS, `manifests.${process.pid}`);
  mkdirSync(draft, { recursive: true });
  try {
    writeFileSync(join(draft, 'manifests.ts'), lines.join(''));
    const flags = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--types', ''];
    const modules = ['--module', 'preserve', '--moduleResolution', 'bundler', 'manifests.ts'];
    const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
    expect(await runCommand(tsc, [...flags, ...modules], { cwd: draft })).toEqual({ code: 0, output: '' });
  } finally {
    rmSync(draft, { recursive: true });
  }
});

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);

/** Normalizes the order of fields and named items, and the hash in generated names. */
function normal(value: unknown): unknown {
  if (Array.isArray(value)) {
    const list = value.map(normal);
    return list.every((one) => (one as { name?: string })?.name) ? (list as []).toSorted(byName) : list;
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, one]) => [key, normal(one)] as const)
      .filter(([, one]) => JSON.stringify(one) !== '{}')
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}

function lines(resources: Resource[]): string[] {
  const maps = resources.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name);
  const text = maps.reduce(
    (changed, name) => changed.replaceAll(`"${name}"`, `"${name.replace(/-[a-z0-9]{10}$/, '')}"`),
    JSON.stringify(resources),
  );
  return (JSON.parse(text) as Resource[]).map((resource) => JSON.stringify(normal(resource))).toSorted();
}

test.each(folders)('renders %s like kustomize, if kustomize is installed', async (folder) => {
  const [kubectl, kustomize] = [onPath('kubectl'), onPath('kustomize')];
  if (!kubectl && !kustomize) return;
  const { code, output } = await (kustomize
    ? runCommand(kustomize, ['build', folder])
    : runCommand(kubectl!, ['kustomize', folder]));
  expect([code, code === 0 ? '' : output]).toEqual([0, '']);
  const made = parseAllDocuments(output).map((document) => document.toJS() as Resource);
  expect(lines(render(folder))).toEqual(lines(made));
});
