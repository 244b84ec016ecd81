import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import { closeRecords, database, freshId, save } from '../../test/support/records.ts';
import { read } from '../../test/support/platform.ts';
import { until } from '../../test/support/wait.ts';
import { ROOT } from './config.ts';

const run = promisify(execFile);
afterAll(closeRecords);

/** Runs the command as `npm run content-server` does, on the stack of the tests. */
async function contentServer(...args: string[]): Promise<string> {
  return (await run(process.execPath, ['deploy/local/content-server.ts', ...args], { cwd: ROOT })).stdout;
}

test('edits several records, announces them in one call, and shows the clears of one', async () => {
  const ids = [freshId(), freshId()];
  for (const id of ids) {
    // Other test files clear all webforms.
    await save('accesscode', id, 'Old');
    await until('it is cached', async () => (await read('accesscode', id)).cache === 'hit');
  }
  // A second after the edit, content-cache would clear the records itself, unless a session has this lock.
  const lock = await database().connect();
  await lock.query('SELECT pg_advisory_lock(2026112101)');
  const edit = contentServer('edit', 'accesscode', ids.join(), '--title', 'New');
  expect(await edit.finally(() => lock.release(true))).toMatch(
    new RegExp(
      `^updated accesscode ${ids.join(', ')} \\("New"\\): cleared by HTTP, 2 keys deleted in \\d+ ms\\n$`,
    ),
  );
  for (const id of ids) expect((await read('accesscode', id)).title).toBe('New');
  const shown = `  http +accesscode:${ids[0]}  1 key deleted, requested by content-server`;
  const line = new RegExp(`^\\S+Z${shown}$`, 'm');
  await until('the clear is listed', async () =>
    line.test(await contentServer('cleared', 'accesscode', String(ids[0]))),
  );
  const clears = await contentServer('cleared', 'accesscode', String(freshId()));
  expect(clears).toMatch(/accesscode:\*|was not cleared in the last 30 days/);
});

test('announces several records through Kafka', async () => {
  const ids = [freshId(), freshId()];
  for (const id of ids) await save('webform', id, 'Old');
  const output = await contentServer('edit', 'webform', ids.join(), '--title', 'New', '--via', 'kafka');
  expect(output).toMatch(/announced through Kafka/);
  for (const id of ids)
    await until('the clear is listed', async () =>
      new RegExp(`kafka +webform:${id} `).test(await contentServer('cleared', 'webform', String(id))),
    );
});
