import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWorkspace } from './workspace.ts';

let root: string;
beforeEach(async () => {
  root = join(await mkdtemp(join(tmpdir(), 'workspace-')), 'tmp');
});
afterEach(() => rm(join(root, '..'), { recursive: true }));

test('a folder of its own, which is gone afterwards, also when the work fails', async () => {
  const workspace = await createWorkspace(root);
  const used = await workspace.use(async (folder) => {
    await writeFile(join(folder, 'upload'), 'x');
    return folder;
  });
  expect(existsSync(used)).toBe(false);
  const failing = workspace.use(async (folder) => {
    await writeFile(join(folder, 'upload'), 'x');
    throw new Error('it failed');
  });
  await expect(failing).rejects.toThrow('it failed');
  expect(await readdir(root)).toEqual([]);
});

test('what a crash has left goes, what may be under way stays', async () => {
  const workspace = await createWorkspace(root);
  for (const [name, minutes] of [
    ['left', 11],
    ['under-way', 9],
  ] as const) {
    await mkdir(join(root, name));
    await writeFile(join(root, name, 'upload'), 'x');
    const at = Date.now() / 1_000 - minutes * 60;
    await utimes(join(root, name), at, at);
  }
  await workspace.tidy();
  expect(await readdir(root)).toEqual(['under-way']);
});
