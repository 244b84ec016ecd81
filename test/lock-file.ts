import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a package.json and the lock file say of one package. */
export interface Manifest {
  name?: string;
  version?: string;
  workspaces?: string[];
  [kind: string]: unknown;
}

/** An entry of the lock file's `packages`. */
interface Locked extends Manifest {
  resolved?: string;
  link?: boolean;
}

const kinds = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'];

function differences(folder: string, manifest: Manifest, locked: Locked): string[] {
  const where = folder === '' ? 'package.json' : `${folder}/package.json`;
  const found = ['name', 'version']
    .filter((field) => manifest[field] !== locked[field])
    .map((field) => `${where}: ${field} is ${String(manifest[field])}, locked is ${String(locked[field])}`);
  for (const kind of kinds) {
    const [wanted, known] = [manifest, locked].map((each) => (each[kind] ?? {}) as Record<string, string>);
    for (const name of new Set([...Object.keys(wanted!), ...Object.keys(known!)]))
      if (wanted![name] !== known![name])
        found.push(
          `${where}: ${kind}.${name} is ${wanted![name] ?? 'not there'}, locked is ${known![name] ?? 'not there'}`,
        );
  }
  return found;
}

/**
 * Where the lock file disagrees with the package.json files, one line each: `npm ci` would refuse it.
 * @param manifests the package.json of the root, '', and of each workspace, by its folder
 */
export function lockProblems(
  packages: Record<string, Locked>,
  manifests: Record<string, Manifest>,
): string[] {
  const problems = Object.entries(manifests).flatMap(([folder, manifest]) => {
    const locked = packages[folder];
    if (!locked) return [`${folder}/package.json: the workspace is not in the lock file`];
    const link = packages[`node_modules/${manifest.name}`];
    const isLinked = folder === '' || (link?.link === true && link.resolved === folder);
    return [
      ...differences(folder, manifest, locked),
      ...(isLinked ? [] : [`${folder}/package.json: the lock file does not link ${manifest.name} to it`]),
    ];
  });
  const gone = Object.keys(packages).filter(
    (path) => !path.split('/').includes('node_modules') && !Object.hasOwn(manifests, path),
  );
  return [...problems, ...gone.map((path) => `${path} is in the lock file and is no workspace`)];
}

const readJson = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as unknown;

/** The lock file's packages and the package.json files of the repository in the folder `root`, for `lockProblems`. */
export function readPackages(root: string): Parameters<typeof lockProblems> {
  const { packages } = readJson(join(root, 'package-lock.json')) as { packages: Record<string, Locked> };
  const own = readJson(join(root, 'package.json')) as Manifest;
  const folders = globSync(own.workspaces ?? [], { cwd: root }).filter((folder) =>
    existsSync(join(root, folder, 'package.json')),
  );
  const workspaces = folders.map(
    (folder) => [folder, readJson(join(root, folder, 'package.json')) as Manifest] as const,
  );
  return [packages, { '': own, ...Object.fromEntries(workspaces) }];
}
