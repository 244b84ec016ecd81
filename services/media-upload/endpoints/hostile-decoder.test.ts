import { expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { useService } from '../testing/service.ts';

const current = useService();
const program = new URL('../testing/scripted-worker.ts', import.meta.url);

// A file that takes over its decoder chooses what the decoder writes and returns.
test.each([
  ['a symbolic link in place of a variant', (path: string) => `link ${path}`],
  ['the path of another file as the name of a variant', () => 'name ../../secret'],
])('stores and deletes nothing else when a decoder returns %s', async (_, order) => {
  const secret = join(current.fixture.folder, 'secret');
  await writeFile(secret, 'secret');
  const service = await current.start({ pool: { program } });
  expect(await service.upload(Buffer.from(order(secret)))).toMatchObject({ status: 500 });
  expect(existsSync(secret)).toBe(true);
  expect(await current.keys()).toEqual([]);
  expect(await current.fixture.files.list(1)).toEqual([]);
});

test('neither serves a symbolic link that replaced a file while it was stored, nor waits for a pipe', async () => {
  const { folder, store } = current.fixture;
  await symlink(folder, join(folder, 'files', 'a-thumb'));
  await expect(store.get('a-thumb')).rejects.toMatchObject({ code: 'ELOOP' });
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  await expect(store.put('b-thumb', join(folder, 'pipe'))).rejects.toMatchObject({ syscall: 'fsync' });
});
