import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { ROOT } from '../deploy/local/config.ts';
import { complaint, importsOf } from './support/imports.ts';

const files = execFileSync('git', ['ls-files', '*.ts'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');

test('imports point one way', () => {
  const wrong = files
    .flatMap((file) => importsOf(file))
    .flatMap((one) => complaint(one)?.concat(`: ${one.from} -> ${one.to}`) ?? []);
  expect(wrong).toEqual([]);
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
