import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';

interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  allowScripts?: Record<string, boolean>;
}

export interface Locked {
  version?: string;
  integrity?: string;
  optional?: true;
  license?: string;
  link?: true;
  hasInstallScript?: true;
  os?: string[];
  optionalDependencies?: Record<string, string>;
}

const read = <T>(...path: string[]): T => JSON.parse(readFileSync(join(ROOT, ...path), 'utf8')) as T;

const peers = join('test', 'bench', 'peers');
/** Folders with their own lock file: the platform, the peers of the gateway benchmark, and a proof of the client. */
export const projects = ['', peers, join('clients', 'typescript', 'tests', 'proof', 'typescript-5')];

/** Returns the package name for a path in the lock file; undefined for workspaces. */
const nameOf = (path: string): string | undefined =>
  /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1];

/** Returns every installed package of all lock files with its name, once for each path. */
export function lockedPackages(): (Locked & { name: string })[] {
  return projects.flatMap((project) => {
    const { packages } = read<{ packages: Record<string, Locked> }>(project, 'package-lock.json');
    return Object.entries(packages).flatMap(([path, locked]) => {
      const name = nameOf(path);
      return name === undefined || locked.link ? [] : [{ ...locked, name }];
    });
  });
}

/** Returns the packages that a folder's package.json declares, with their versions. */
export function declaredIn(folder: string): Record<string, string> {
  const { dependencies, devDependencies } = read<Manifest>(folder, 'package.json');
  return { ...dependencies, ...devDependencies };
}

/** Returns the direct dependencies with their requested versions, without workspaces and the proof of the client. */
export function directDependencies(): Map<string, Set<string>> {
  const services = readdirSync(join(ROOT, 'services')).map((name) => join('services', name));
  const versions = new Map<string, Set<string>>();
  for (const folder of ['', peers, 'gateway', ...services]) {
    for (const [name, version] of Object.entries(declaredIn(folder))) {
      if (name.startsWith('@content-platform/')) continue;
      versions.set(name, (versions.get(name) ?? new Set()).add(version));
    }
  }
  return versions;
}

/** Returns for each package whether its install scripts may run. */
export const allowScripts = (): Record<string, boolean> => read<Manifest>('package.json').allowScripts ?? {};

/** Returns the lines of docs/project/dependencies.md by npm package; skips other sources. */
export function documented(): Map<string, string> {
  const [fromNpm = ''] = readFileSync(join(ROOT, 'docs', 'project', 'dependencies.md'), 'utf8').split(
    '## Not from npm',
  );
  const rows = fromNpm.split('\n').filter((line) => /^\| [@a-z]/.test(line) && !line.startsWith('| library'));
  return new Map(
    rows.flatMap((row) => {
      const names = row.split('|')[1]!.split(',');
      return names.map((name): [string, string] => [name.trim(), row]);
    }),
  );
}
