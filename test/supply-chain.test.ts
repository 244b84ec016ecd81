import { expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../deploy/local/config.ts';
import {
  allowScripts,
  directDependencies,
  documented,
  lockedPackages,
  type Locked,
} from './support/dependencies.ts';
import { table } from './support/table.ts';
import { expectPageIsCurrent } from './support/written-page.ts';

type Package = Locked & { name: string };

/** Licences that at most require keeping their text. */
const permissive = new Set(
  'MIT MIT-0 ISC Apache-2.0 BSD-2-Clause BSD-3-Clause 0BSD BlueOak-1.0.0 Unlicense PSF-2.0'.split(' '),
);

const libvips =
  'libvips, an unchanged shared library beside the program; the LGPL allows this, because it can be replaced';
const oldForm =
  'declares MIT in the outdated field `licenses`, which the lock file does not copy; its LICENSE file is MIT';

/** Accepted exceptions, by the prefix of the package name. */
const exceptions: { name: string; licence: string; reason: string }[] = [
  { name: '@img/sharp-libvips-', licence: 'LGPL-3.0-or-later', reason: libvips },
  { name: '@img/sharp-win32-', licence: 'Apache-2.0 AND LGPL-3.0-or-later', reason: libvips },
  { name: '@img/sharp-wasm32', licence: 'Apache-2.0 AND LGPL-3.0-or-later AND MIT', reason: libvips },
  { name: 'axe-core', licence: 'MPL-2.0', reason: 'used unchanged in tests only' },
  { name: 'argparse', licence: 'Python-2.0', reason: 'permissive, as Python itself; used in one proof only' },
  {
    name: 'caniuse-lite',
    licence: 'CC-BY-4.0',
    reason: 'a table of browsers that jest depends on; tests only',
  },
  ...['busboy', 'streamsearch', 'ssh2', 'cpu-features', 'buildcheck'].map((name) => ({
    name,
    licence: 'MIT',
    reason: oldForm,
  })),
];

/** Binaries that the registry did not have when they were locked: run `npm run lock-integrity` with another one. */
const withoutIntegrity = [
  /^@node-rs\/bcrypt-.*@2\.0\.0$/,
  /^@oxlint\/binding-.*@1\.94\.0$/,
  /^@unrs\/resolver-binding-.*@1\.13\.0$/,
];

const packages = lockedPackages();

/** The lock file may omit the licence of a binary: returns the package that depends on it. */
const ownerOf = ({ name, os }: Package): Package | undefined =>
  os && packages.find(({ optionalDependencies = {} }) => Object.hasOwn(optionalDependencies, name));

const exceptionOf = ({ name, license }: Package) =>
  exceptions.find((one) => name.startsWith(one.name) && (license ?? one.licence) === one.licence);

const licenceOf = (one: Package): string | undefined =>
  one.license ?? exceptionOf(one)?.licence ?? ownerOf(one)?.license;

/** Evaluates an SPDX expression: one part of OR suffices, every part of AND must be permissive. */
const isPermissive = (expression: string): boolean =>
  expression
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((way) => way.split(' AND ').every((licence) => permissive.has(licence)));

test('every package has an allowed licence or is an exception with a reason', () => {
  const refused = packages
    .filter((one) => !isPermissive(licenceOf(one) ?? 'none') && !exceptionOf(one))
    .map((one) => `${one.name}: ${licenceOf(one) ?? 'none'}`);
  expect(refused).toEqual([]);
});

test('every exception is needed', () => {
  const idle = exceptions.filter((exception) => !packages.some((one) => exceptionOf(one) === exception));
  expect(idle).toEqual([]);
});

test('package.json allows or denies the install script of every package that has one', () => {
  const scripts = allowScripts();
  const withScript = packages.filter(({ hasInstallScript }) => hasInstallScript).map(({ name }) => name);
  expect([...new Set(withScript)].toSorted()).toEqual(Object.keys(scripts).toSorted());
});

test('every downloaded package has an integrity, except binaries that the registry did not have', () => {
  const unverified = packages.filter(({ integrity }) => !/^sha512-[\w+/]{86}==$/.test(integrity ?? ''));
  const isBinary = ({ name, version, optional, os }: Package) =>
    optional && os && withoutIntegrity.some((pattern) => pattern.test(`${name}@${version}`));
  expect(unverified.filter((one) => !isBinary(one)).map(({ name }) => name)).toEqual([]);
  const idle = withoutIntegrity.filter(
    (pattern) => !unverified.some(({ name, version }) => pattern.test(`${name}@${version}`)),
  );
  expect(idle).toEqual([]);
});

test('the workflows name every action by its commit', () => {
  const folder = join(ROOT, '.github', 'workflows');
  const texts = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
  // `./` is a workflow of this repository.
  const actions = texts.flatMap((text) =>
    [...text.matchAll(/uses: (?!\.\/)(.*)/g)].map(([, action]) => action!),
  );
  expect(actions.filter((action) => !/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).toEqual([]);
  expect(actions).not.toEqual([]);
});

test('every version is exact, and the same in all workspaces', () => {
  const loose = [...directDependencies()].filter(
    ([, versions]) =>
      versions.size > 1 || ![...versions].every((version) => /^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)),
  );
  expect(loose.map(([name]) => name)).toEqual([]);
});

test('docs/project/dependencies.md lists every dependency and no other', () => {
  expect([...documented().keys()].toSorted()).toEqual([...directDependencies().keys()].toSorted());
});

test('docs/project/licences.md matches the installed licences', () => {
  const counts = new Map<string, number>();
  for (const one of new Map(packages.map((each) => [`${each.name}@${each.version}`, each])).values()) {
    const licence = licenceOf(one) ?? 'none';
    counts.set(licence, (counts.get(licence) ?? 0) + 1);
  }
  const byCount = [...counts].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const text = `# Licences

For evaluators: the licences of all npm packages. The platform itself has the [MIT licence](../../LICENSE). Other programs, for example Redis and Grafana: [dependencies](dependencies.md#programs-that-compose-starts). If you distribute images: [licences in the images](dependencies.md#licences-in-the-images).

Generated by test/supply-chain.test.ts; do not edit. The test reads every lock file of the repository, and fails and rewrites this page when they change.

Each name and version counts once. Packages for every operating system are included, as are those for building and testing.

${table([['licence', 'packages'], ...byCount.map(([licence, count]) => [licence, String(count)])])}

## Exceptions

Packages whose licence is not permissive or not in the lock file. The names are prefixes.

${table([['package', 'licence', 'why it is accepted'], ...exceptions.map(({ name, licence, reason }) => [name, licence, reason])])}
`;
  const file = join(ROOT, 'docs', 'project', 'licences.md');
  expectPageIsCurrent(file, text);
});
