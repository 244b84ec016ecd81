import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { ROOT } from '../deploy/local/config.ts';
import { complaint, importsOf, isTest, packageOf } from './support/imports.ts';

// Also files that are new, before they are added.
const listing = ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts'];
const files = execFileSync('git', listing, { cwd: ROOT, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((file) => existsSync(file));

test('imports point one way', () => {
  const wrong = files
    .flatMap((file) => importsOf(file))
    .flatMap((one) => complaint(one)?.concat(`: ${one.from} -> ${one.to}`) ?? []);
  expect(wrong).toEqual([]);
});

/** What a package.json declares. */
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

test.each([
  ['services/auth/a-store.ts', "import { login } from './endpoints/login.ts';"],
  ['services/auth/user-store.ts', "import { createAuth } from './app.ts';"],
  ['services/auth/app.ts', "import { x } from '../content-cache/app.ts';"],
  ['services/auth/app.ts', "import { x } from '@content-platform/content-cache';"],
  ['services/auth/app.ts', "import { x } from '../chassis/config.ts';"],
  ['services/auth/app.ts', "export * from '../../gateway/app.ts';"],
  ['services/chassis/run.ts', "import { errors } from '@content-platform/contract';"],
  ['services/chassis/run.ts', "import {\n  a,\n  b,\n} from '@content-platform/auth/accounts';"],
  ['services/contract/index.ts', "import type { Call } from '@content-platform/chassis';"],
  ['test/contract/x.test.ts', "const { x } = await import('../../services/auth/app.ts');"],
  ['gateway/proxy.ts', "import './main.ts';"],
])('an import in %s that points the wrong way is found: %s', (file, text) => {
  expect(importsOf(file, text).map(complaint)).toEqual([expect.any(String)]);
});

test.each([
  ['services/auth/app.ts', "import { createService } from '@content-platform/chassis';"],
  ['services/auth/app.ts', "import { login } from './endpoints/login.ts';"],
  ['services/auth/endpoints/login.ts', "import type { UserStore } from '../user-store.ts';"],
  ['services/chassis/run.ts', "import type { Endpoint } from '@content-platform/contract';"],
  ['services/auth/app.ts', "import express from 'express';"],
  ['test/contract/x.test.ts', "import { login } from '@content-platform/contract';"],
])('an import in %s that points the right way is left alone: %s', (file, text) => {
  expect(importsOf(file, text).map(complaint)).toEqual([undefined]);
});
