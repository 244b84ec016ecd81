import { afterEach, expect, jest, test } from '@jest/globals';
import { fork, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { open, readFile, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import * as corpus from '../testing/corpus.ts';
import { createTestPool, type TestPool } from '../testing/pools.ts';

const unruly = new URL('../testing/scripted-worker.ts', import.meta.url);
let pool: TestPool | undefined;
afterEach(async () => {
  await pool?.close();
  pool = undefined;
});

async function findingOf(order: string): Promise<string> {
  pool ??= await createTestPool({ size: 1, program: unruly });
  return ((await pool.process(Buffer.from(order))) as { mime: string }).mime;
}

test('a worker process has none of our environment variables', async () => {
  expect(process.env['STACK_FILE']).toBeDefined();
  const names = await findingOf('environment');
  expect(names.split(' ').filter((name) => !name.startsWith('NODE_CHANNEL_'))).toEqual([
    'MALLOC_ARENA_MAX',
    'MALLOC_MMAP_THRESHOLD_',
    'MALLOC_TRIM_THRESHOLD_',
  ]);
});

if (existsSync('/proc/self/fd')) {
  test('a worker process inherits none of our files and connections', async () => {
    const secret = await open(import.meta.filename);
    try {
      const opened = (await findingOf('open')).split(' ');
      const [none, stderr] = ['/dev/null', await readlink('/proc/self/fd/2')];
      const others = opened.filter(
        (file) => file !== none && file !== stderr && !/^(?:anon_inode|pipe):/.test(file),
      );
      // Its stdin, its stdout and the channel to us.
      expect([...opened.slice(0, 2), ...others]).toEqual([none, none, expect.stringMatching(/^socket:/)]);
    } finally {
      await secret.close();
    }
  });
}

if (process.getuid?.() === 0) {
  test('decoders of a service that runs as root have a user of their own', async () => {
    const startProcess = jest.fn(fork);
    pool = await createTestPool({ size: 1, startProcess: startProcess as unknown as typeof fork });
    expect(await pool.process(await corpus.jpeg())).toMatchObject({ kind: 'image' });
    const { pid } = startProcess.mock.results[0]!.value as ChildProcess;
    const status = await readFile(`/proc/${pid}/status`, 'latin1');
    expect(status).toMatch(/^Uid:(?:\t59083){4}\nGid:(?:\t59083){4}$/m);
    expect(status).toMatch(/^Groups:\s*$/m);
    expect(status).toMatch(/^CapEff:\t0+$/m);
  });

  test('a worker process of a service that runs as root reads neither its environment nor its files', async () => {
    const secret = join(temporaryFolder(), 'database-url');
    await writeFile(secret, 'hunter2', { mode: 0o600 });
    for (const path of ['/proc/PARENT/environ', '/proc/PARENT/mem', secret])
      expect([path, await findingOf(`read ${path}`)]).toEqual([path, 'EACCES']);
  });
}
