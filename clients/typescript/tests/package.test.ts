import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from '@jest/globals';
import { ROOT } from '../../../deploy/local/config.ts';
import { openBrowser } from '../../../test/support/chromium.ts';
import { closeRecords } from '../../../test/support/records.ts';
import { pageOrigin } from '../../../test/support/stack.ts';
import { useStarted } from '../../../test/support/use-started.ts';
import {
  appCode,
  createApplication,
  expected,
  packageFolder,
  readmeCode,
  runScenario,
  servePage,
  withScenario,
} from './application.ts';

const app = useStarted(createApplication);
afterAll(closeRecords);

test('the package has no dependencies and at most 10 KB', () => {
  const manifest = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as object;
  expect(manifest).not.toHaveProperty('dependencies');
  const installed = join(app.folder, 'node_modules', '@content-platform', 'client');
  expect(readdirSync(installed).toSorted()).toEqual(['README.md', 'dist', 'package.json']);
  const scripts = readdirSync(join(installed, 'dist')).filter((name) => name.endsWith('.js'));
  const code = scripts.map((name) => readFileSync(join(installed, 'dist', name), 'utf8')).join('');
  expect(gzipSync(code).length).toBeLessThan(10_240);
});

test('the code of the README works as printed', async () => {
  writeFileSync(join(app.folder, 'app.mjs'), readmeCode('js').join('\n'));
  const output = await app.run(process.execPath, ['app.mjs']);
  for (const line of [
    /^Logged in as Uma User$/m,
    /^2 found, missing: \[ 999999 \]$/m,
    /^webform 50 /m,
    /^letter /m,
    /^\d+ pathways, next time follow after \S+$/m,
    /^uploaded thumb,medium,large [1-9]\d+ bytes$/m,
    /^device /m,
    /^user@example\.com \S+$/m,
    /^stored of Uma User \d+ files$/m,
    /^404 not_found .* \S+$/m,
  ])
    expect(output).toMatch(line);
});

test('an app with the package runs on Node', async () => {
  await withScenario(async (given) =>
    expect(await runScenario(app, process.execPath, given)).toEqual(expected(given)),
  );
});

test.each(['nodenext', 'preserve'])('an app in TypeScript compiles with --module %s', async (module) => {
  writeFileSync(join(app.folder, 'app.mts'), appCode);
  const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--target', 'es2022'];
  await app.run(join(ROOT, 'node_modules', '.bin', 'tsc'), [...options, '--module', module, 'app.mts']);
});

test('a page with the package runs in Chromium, from another origin', async () => {
  const server = servePage(app);
  const browser = await openBrowser();
  try {
    const page = await browser.newPage();
    await page.goto(`${pageOrigin()}/index.html`);
    await withScenario(async (given) => {
      const result = await page.evaluate(async (input) => {
        const { scenario } = await import('/scenario.mjs' as string);
        const { createClient } = await import('@content-platform/client' as string);
        return scenario(createClient, input);
      }, given);
      expect(result).toEqual(expected(given));
    });
    expect(
      await page.evaluate(
        "platform.login({ email: 'user@example.com', password: 'demo-password' }).then(() => platform.isLoggedIn())",
      ),
    ).toBe(true);
    await page.reload();
    expect(await page.evaluate("platform.request('me').then(({ email }) => email)")).toBe('user@example.com');
  } finally {
    await browser.close();
    server.close();
  }
});
