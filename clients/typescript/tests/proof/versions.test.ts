import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { closeRecords } from '../../../../test/support/records.ts';
import { stack } from '../../../../test/support/stack.ts';
import { useStarted } from '../../../../test/support/use-started.ts';
import {
  appCode,
  createApplication,
  expected,
  packageFolder,
  runScenario,
  withScenario,
} from '../application.ts';

const installLimitMs = 120_000;
const node20 = '20.20.2';

const app = useStarted(createApplication, installLimitMs);
afterAll(closeRecords);

test(
  'an app with the package runs on Node 20',
  async () => {
    const name = `node-${process.platform}-${process.arch}`;
    await app.run('npm', ['install', `${name}@${node20}`], { within: installLimitMs });
    const node = join(app.folder, 'node_modules', name, 'bin', 'node');
    expect(await app.run(node, ['--version'])).toBe(`v${node20}\n`);
    await withScenario(async (given) =>
      // Node 20 has no locks: two clients with one storage may refresh at the same time, which the platform accepts.
      expect(await runScenario(app, node, given)).toEqual({
        ...expected(given),
        refreshes: expect.any(Number),
      }),
    );
  },
  2 * installLimitMs,
);

test(
  'TypeScript 5 compiles an app with the package, and the types that openapi-typescript makes of our document',
  async () => {
    const folder = join(packageFolder, 'tests', 'proof', 'typescript-5');
    const [compiler, generator] = ['typescript/bin/tsc', 'openapi-typescript/bin/cli.js'].map((file) =>
      join(folder, 'node_modules', file),
    ) as [string, string];
    await app.run('npm', ['ci', '--ignore-scripts'], { cwd: folder, within: installLimitMs });
    await app.run(process.execPath, [generator, `${stack().gateway}/api/openapi.json`, '--output', 'api.ts']);
    writeFileSync(join(app.folder, 'app.mts'), appCode);
    const options = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext'];
    await app.run(process.execPath, [compiler, ...options, 'app.mts', 'api.ts']);
  },
  2 * installLimitMs,
);
