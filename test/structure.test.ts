import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { ROOT } from '../deploy/local/config.ts';
import { complaint, importsOf, isTest, packageOf } from './support/imports.ts';

// Includes new files that git does not track yet.
const listing = ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts'];
const files = execFileSync('git', listing, { cwd: ROOT, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((file) => existsSync(file));

test('imports follow the allowed directions', () => {
  const wrong = files
    .flatMap((file) => importsOf(file))
    .flatMap((one) => complaint(one)?.concat(`: ${one.from} -> ${one.to}`) ?? []);
  expect(wrong).toEqual([]);
});

function declaredIn(folder: string): Set<string> {
  const manifest = JSON.parse(readFileSync(`${ROOT}/${folder}/package.json`, 'utf8')) as {
    dependencies?: Record<string, string>;
    devDependencies?: Record<string, string>;
  };
  return new Set(Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }));
}

const packages = ['gateway', ...readdirSync(`${ROOT}/services`).map((name) => `services/${name}`)];

test.each(packages)('%s declares the packages it imports, and no others', (folder) => {
  const imported = files
    .filter((file) => file.startsWith(`${folder}/`))
    .flatMap((file) => importsOf(file))
    .flatMap(({ from, to }) => ({ from, name: packageOf(to) }))
    .filter(({ name }) => name !== undefined);
  const declared = declaredIn(folder);
  const forTests = declaredIn('.');
  const missing = imported.filter(
    ({ from, name }) => !declared.has(name!) && !(isTest(from) && forTests.has(name!)),
  );
  expect(missing).toEqual([]);
  const names = new Set(imported.map(({ name }) => name));
  expect([...declared].filter((name) => !names.has(name))).toEqual([]);
});
