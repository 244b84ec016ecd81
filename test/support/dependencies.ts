import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';

interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  allowScripts?: Record<string, boolean>;
}

/** A package as package-lock.json has it. */
export interface Locked {
  version?: string;
  license?: string;
  link?: true;
  hasInstallScript?: true;
  os?: string[];
  optionalDependencies?: Record<string, string>;
}

const read = <T>(...path: string[]): T => JSON.parse(readFileSync(join(ROOT, ...path), 'utf8')) as T;

/** What is installed by itself: the platform, and what the gateway is measured against. */
export const projects = ['', join('test', 'bench', 'peers')];

/** The name of a package, given where the lock file puts it; undefined for our own. */
const nameOf = (path: string): string | undefined =>
  /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1];

/** Every package of both lock files, at each place where it is, with its name. */
export function lockedPackages(): (Locked & { name: string })[] {
  return projects.flatMap((project) => {
    const { packages } = read<{ packages: Record<string, Locked> }>(project, 'package-lock.json');
    return Object.entries(packages).flatMap(([path, locked]) => {
      const name = nameOf(path);
      return name === undefined || locked.link ? [] : [{ ...locked, name }];
    });
  });
}

/** Every package that is somebody's dependency here, ours aside, with the versions that are asked for. */
export function directDependencies(): Map<string, Set<string>> {
  const services = readdirSync(join(ROOT, 'services')).map((name) => join('services', name));
  const versions = new Map<string, Set<string>>();
  for (const folder of [...projects, 'gateway', ...services]) {
    const { dependencies, devDependencies } = read<Manifest>(folder, 'package.json');
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      if (name.startsWith('@content-platform/')) continue;
      versions.set(name, (versions.get(name) ?? new Set()).add(version));
    }
  }
  return versions;
}

/** Whose install scripts may run, and whose may not. */
export const allowScripts = (): Record<string, boolean> => read<Manifest>('package.json').allowScripts ?? {};

/** The lines of docs/project/dependencies.md by the name of a package; what is not from npm is left out. */
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

/** Those of whom docs/project/dependencies.md says that nobody releases them any more, and why they stay. */
export function knownUnmaintained(): string[] {
  const mark = /unmaintained since \d{4}(-\d{2})?: \w/;
  return [...documented()].filter(([, row]) => mark.test(row)).map(([name]) => name);
}
