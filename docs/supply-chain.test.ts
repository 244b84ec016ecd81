import { expect, test } from '@jest/globals';
import { join } from 'node:path';
import { ROOT } from '../deploy/local/config.ts';
import {
  allowScripts,
  directDependencies,
  documented,
  lockedPackages,
  type Locked,
} from '../test/support/dependencies.ts';
import { table } from '../test/support/table.ts';
import { expectPage } from '../test/support/written-page.ts';

type Package = Locked & { name: string };

/** They ask for their text to be kept, at most. */
const permissive = new Set([
  'MIT',
  'MIT-0',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'BlueOak-1.0.0',
  'Unlicense',
  'PSF-2.0',
]);

const libvips =
  'libvips as a library of its own beside the program, which the LGPL allows: it may be replaced, and is not changed';
const oldForm =
  'says so in the old form, `licenses`, which the lock file does not take over; its LICENSE is that of MIT';

/** Taken all the same, by the beginning of their names. */
const exceptions: { name: string; licence: string; reason: string }[] = [
  { name: '@img/sharp-libvips-', licence: 'LGPL-3.0-or-later', reason: libvips },
  { name: '@img/sharp-win32-', licence: 'Apache-2.0 AND LGPL-3.0-or-later', reason: libvips },
  { name: '@img/sharp-wasm32', licence: 'Apache-2.0 AND LGPL-3.0-or-later AND MIT', reason: libvips },
  { name: 'axe-core', licence: 'MPL-2.0', reason: 'in tests alone, and not changed' },
  { name: 'caniuse-lite', licence: 'CC-BY-4.0', reason: 'a table of browsers, under jest, in tests alone' },
  ...['busboy', 'streamsearch', 'ssh2', 'cpu-features', 'buildcheck'].map((name) => ({
    name,
    licence: 'MIT',
    reason: oldForm,
  })),
];

const packages = lockedPackages();

/** Whose optional dependency a binary for one platform is: the lock file need not say what its licence is. */
function ownerOf({ name, os }: Package): Package | undefined {
  return os && packages.find(({ optionalDependencies = {} }) => Object.hasOwn(optionalDependencies, name));
}

const exceptionOf = ({ name, license }: Package) =>
  exceptions.find(
    (exception) =>
      name.startsWith(exception.name) && (license === undefined || license === exception.licence),
  );

const licenceOf = (one: Package): string | undefined =>
  one.license ?? exceptionOf(one)?.licence ?? ownerOf(one)?.license;

/** An SPDX expression: one of the alternatives is enough, of what is joined all. */
const isPermissive = (expression: string): boolean =>
  expression
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((way) => way.split(' AND ').every((licence) => permissive.has(licence)));

test('every package has a licence that is allowed, or is an exception with a reason', () => {
  const refused = packages
    .filter((one) => !isPermissive(licenceOf(one) ?? 'none') && !exceptionOf(one))
    .map((one) => `${one.name}: ${licenceOf(one) ?? 'none'}`);
  expect(refused).toEqual([]);
});

test('every exception is needed', () => {
  const idle = exceptions.filter((exception) => !packages.some((one) => exceptionOf(one) === exception));
  expect(idle).toEqual([]);
});

test('of every package with an install script package.json says whether it may run', () => {
  const scripts = allowScripts();
  const undecided = packages
    .filter(({ name, hasInstallScript }) => hasInstallScript && !Object.hasOwn(scripts, name))
    .map(({ name }) => name);
  expect(undecided).toEqual([]);
  const idle = Object.keys(scripts).filter(
    (wanted) => !packages.some(({ name, hasInstallScript }) => hasInstallScript && name === wanted),
  );
  expect(idle).toEqual([]);
});

test('every version is exact, and the same wherever a library is used', () => {
  const loose = [...directDependencies()].filter(
    ([, versions]) =>
      versions.size > 1 || ![...versions].every((version) => /^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)),
  );
  expect(loose.map(([name]) => name)).toEqual([]);
});

test('docs/dependencies.md has a line for every dependency, and no other', () => {
  expect([...documented().keys()].toSorted()).toEqual([...directDependencies().keys()].toSorted());
});

test('docs/licences.md says which licences there are, as they are', () => {
  const counts = new Map<string, number>();
  for (const one of new Map(packages.map((each) => [`${each.name}@${each.version}`, each])).values()) {
    const licence = licenceOf(one) ?? 'none';
    counts.set(licence, (counts.get(licence) ?? 0) + 1);
  }
  const byCount = [...counts].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const text = `# Licences

Written by its test, which reads the lock files of the platform and of \`test/bench/peers\`: where the two differ it fails, and writes what it saw. Packages for every platform are counted, those for building and testing too.

${table([['licence', 'packages'], ...byCount.map(([licence, count]) => [licence, String(count)])])}

## Exceptions

Not permissive, or not said where it is looked for; by the beginning of the package's name.

${table([['package', 'licence', 'why it is taken'], ...exceptions.map(({ name, licence, reason }) => [name, licence, reason])])}
`;
  const file = join(ROOT, 'docs', 'licences.md');
  expectPage(file, text);
});
