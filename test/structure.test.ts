import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { ROOT } from '../deploy/local/config.ts';
import { declaredIn } from './support/dependencies.ts';
import { importsOf, isTest, packageOf, violatedRule } from './support/imports.ts';

// Includes new files that git does not track yet.
const listing = ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts'];
const files = execFileSync('git', listing, { cwd: ROOT, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((file) => existsSync(file));

test('imports follow the allowed directions', () => {
  const wrong = files
    .flatMap((file) => importsOf(file))
    .flatMap((one) => violatedRule(one)?.concat(`: ${one.from} -> ${one.to}`) ?? []);
  expect(wrong).toEqual([]);
});

const packages = ['gateway', ...readdirSync(`${ROOT}/services`).map((name) => `services/${name}`)];

test.each(packages)('%s declares the packages it imports, and no others', (folder) => {
  const imported = files
    .filter((file) => file.startsWith(`${folder}/`))
    .flatMap((file) => importsOf(file))
    .flatMap(({ from, to }) => ({ from, name: packageOf(to) }))
    .filter(({ name }) => name !== undefined);
  const declared = new Set(Object.keys(declaredIn(folder)));
  const forTests = declaredIn('');
  const missing = imported.filter(
    ({ from, name }) => !declared.has(name!) && !(isTest(from) && Object.hasOwn(forTests, name!)),
  );
  expect(missing).toEqual([]);
  const names = new Set(imported.map(({ name }) => name));
  expect([...declared].filter((name) => !names.has(name))).toEqual([]);
});
