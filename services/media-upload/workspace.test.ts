import { beforeEach, expect, test } from '@jest/globals';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { createWorkspace } from './workspace.ts';

let root: string;
beforeEach(() => void (root = join(temporaryFolder(), 'tmp')));

test('removes the folder of an upload afterwards, also when the work fails', async () => {
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

test('removes folders older than ten minutes, and leaves younger ones', async () => {
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
  await workspace.removeAbandoned();
  expect(await readdir(root)).toEqual(['under-way']);
});

/** The folder that the disk `broken` cannot remove. */
let stuck = '';
const broken: typeof rm = async (path, options) => {
  if (path === join(root, stuck)) throw Object.assign(new Error('EIO: i/o error, rmdir'), { code: 'EIO' });
  return rm(path, options);
};

test('returns the result of the work when its folder cannot be removed now', async () => {
  const workspace = await createWorkspace(root, broken);
  const work = async (folder: string) => {
    stuck = basename(folder);
    return 'stored';
  };
  expect(await workspace.use(work)).toBe('stored');
  expect(await readdir(root)).toEqual([stuck]);
});

test('removes the other folders when one cannot be removed', async () => {
  stuck = 'a';
  const workspace = await createWorkspace(root, broken);
  for (const name of ['a', 'b', 'c']) {
    await mkdir(join(root, name));
    await utimes(join(root, name), 0, 0);
  }
  await expect(workspace.removeAbandoned()).rejects.toThrow('EIO');
  expect(await readdir(root)).toEqual(['a']);
});
