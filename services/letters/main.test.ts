import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freeRow } from '../../deploy/local/ports.ts';
import { bareEnvironment } from '../../test/support/processes.ts';
import { until } from '../../test/support/wait.ts';
import { startLetters, type TestLetters } from './testing.ts';

let letters: TestLetters;
beforeAll(async () => {
  letters = await startLetters();
});
afterAll(() => letters.stop());

const main = fileURLToPath(new URL('main.ts', import.meta.url));

test('Idempotency-Keys of more than 24 hours ago go, those of today stay', async () => {
  const id = await letters.letter();
  const wish = { letter_id: id, webform_id: 2, skipped: true };
  for (const key of ['old', 'new']) await letters.skip(wish, { 'Idempotency-Key': key });
  const keys = async () => {
    const { rows } = await letters.database.query<{ key: string }>(
      'test',
      'SELECT key FROM letters.idempotency_key',
    );
    return rows.map(({ key }) => key).toSorted();
  };
  expect(await keys()).toEqual(['new', 'old']);
  await letters.database.query(
    'test',
    `UPDATE letters.idempotency_key SET created_at = now() - interval '25 hours' WHERE key = 'old'`,
  );
  const env = { ...bareEnvironment, DATABASE_URL: letters.databaseUrl, PORT: String(await freeRow(1)) };
  const child = spawn(process.execPath, [main], { env, stdio: 'ignore' });
  const ended = once(child, 'exit');
  await until('the old key is gone', async () => (await keys()).length === 1);
  expect(await keys()).toEqual(['new']);
  child.kill('SIGTERM');
  expect((await ended)[0]).toBe(0);
});
