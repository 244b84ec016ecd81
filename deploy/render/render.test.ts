import { expect, test } from '@jest/globals';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../local/config.ts';
import { renderFiles } from './files.ts';

test('generated files are up to date', async () => {
  const folder = 'grafana/dashboards';
  const stale = new Set(readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`));
  const outdated: string[] = [];
  for await (const [file, text] of renderFiles()) {
    const path = join(ROOT, file);
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text) outdated.push(file);
    stale.delete(file);
  }
  expect([...stale]).toEqual([]);
  if (outdated.length > 0)
    throw new Error(`Run npm run render, look at the change and commit it. Outdated: ${outdated.join(', ')}`);
  expect(outdated).toEqual([]);
});
