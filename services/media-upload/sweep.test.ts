import { beforeEach, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startProgram } from '../../test/support/programs.ts';
import { useStarted } from '../../test/support/use-started.ts';
import type { StoredFile, Store } from './stores/store.ts';
import { sweepMedia } from './commands/sweep-media.ts';
import { deleteOrphans, findOrphans } from './sweep.ts';
import { newFile, createMediaFixture } from './testing/media-fixture.ts';

const fixture = useStarted(createMediaFixture);

const hourMs = 3_600_000;
/** The store, with all files older than they are. Its list takes 20 ms, has each file twice, and omits one object. */
function agedStore(ageMs: number, omitted = 'none'): Store {
  const { store } = fixture;
  async function* list(): AsyncGenerator<StoredFile> {
    await sleep(20);
    for await (const { key } of store.list()) {
      if (!key.startsWith(omitted)) yield* [key, key].map((each) => ({ key: each, ageMs }));
    }
  }
  return { ...store, list };
}

async function put(key: string): Promise<string> {
  await fixture.store.put(key, await fixture.fileOf(Buffer.from('pdf')));
  return key;
}

/** Stores a file with its variants and its row. */
async function whole() {
  const file = newFile();
  await fixture.files.begin(file);
  await put(`${file.object}-original`);
  return fixture.files.add(file);
}

beforeEach(async () => {
  await fixture.sql('TRUNCATE media.file, media.pending_object');
  for await (const { key } of fixture.store.list()) await fixture.store.remove(key);
});

test('finds and deletes files without a row and rows without a file', async () => {
  const kept = await whole();
  const lost = await whole();
  await fixture.store.remove(`${lost.object}-original`);
  const orphan = await put(`${randomUUID()}-thumb`);
  const surplus = await put(`${kept.object}-thumb`);
  await put('not-of-ours');
  await put('README.md');

  const { object } = await whole();
  const store = agedStore(2 * hourMs, object);
  const orphans = await findOrphans(fixture.files, store);
  expect({ ...orphans, keys: orphans.keys.toSorted() }).toEqual({
    keys: [orphan, surplus].toSorted(),
    rows: [{ id: lost.id, object: lost.object, missing: [`${lost.object}-original`] }],
  });
  await deleteOrphans(fixture.files, store, orphans);
  expect(await findOrphans(fixture.files, store)).toEqual({ keys: [], rows: [] });
  expect(await fixture.files.find(1, lost.id)).toBeUndefined();
  expect(await fixture.files.find(1, kept.id)).toEqual(kept);
  (await fixture.store.get('not-of-ours'))!.destroy();
});

test('leaves files of the last hour, whose row may follow', async () => {
  await whole();
  await put(`${randomUUID()}-thumb`);
  expect(await findOrphans(fixture.files, agedStore(hourMs + 10))).toEqual({ keys: [], rows: [] });
});

test('throws when only the store or only the table is empty, so that nothing is deleted', async () => {
  const { store, files } = fixture;
  expect(await findOrphans(files, store)).toEqual({ keys: [], rows: [] });
  const orphan = await put(`${randomUUID()}-thumb`);
  await expect(findOrphans(files, store)).rejects.toThrow('The store has 1 files, but the table has no rows');
  const file = await whole();
  for (const key of [orphan, `${file.object}-original`]) await store.remove(key);
  await put('README.md');
  await expect(findOrphans(files, store)).rejects.toThrow('The store has no files');
});

test('ignores rows whose files are in another store', async () => {
  const [here, elsewhere] = [await whole(), await whole()];
  await fixture.files.checkOtherStores();
  await fixture.sql(`UPDATE media.file SET store = 's3:uploads' WHERE id = $1`, elsewhere.id);
  // Its files may have been copied.
  expect(await findOrphans(fixture.files, agedStore(2 * hourMs))).toEqual({ keys: [], rows: [] });
  await fixture.store.remove(`${elsewhere.object}-original`);
  expect(await findOrphans(fixture.files, fixture.store)).toEqual({ keys: [], rows: [] });
  // Uploads the same bytes to this store. The row then has its files.
  const again = newFile({ checksum: elsewhere.checksum });
  expect(await fixture.files.findUpload(1, elsewhere.checksum)).toBeUndefined();
  await fixture.files.begin(again);
  expect(await fixture.files.add(again)).toMatchObject({ id: elsewhere.id, object: again.object });
  expect((await fixture.files.findUpload(1, elsewhere.checksum))?.object).toBe(again.object);
  await expect(fixture.files.checkOtherStores()).rejects.toThrow('s3:uploads');
  expect((await fixture.files.find(1, here.id))?.object).toBe(here.object);
});

test('assigns rows without a store to the store in use', async () => {
  const { id } = await whole();
  await fixture.sql('UPDATE media.file SET store = NULL');
  await fixture.files.assignStore();
  const rows = await fixture.sql(`SELECT id FROM media.file WHERE store = 'folder'`);
  expect(rows).toEqual([{ id: String(id) }]);
});

test('reads more rows than one page', async () => {
  const insert = `INSERT INTO media.file (user_id, object, checksum, mime, bytes, name, variants, store)
                  SELECT 1, gen_random_uuid(), sha256(n::text::bytea), 'application/pdf', 1, 'x', '[]', 'folder'
                  FROM generate_series(1, 2500) AS n`;
  await fixture.sql(insert);
  await whole();
  expect((await findOrphans(fixture.files, fixture.store)).rows).toHaveLength(2_500);
});

function run(args: readonly string[], more: Record<string, string> = {}) {
  const env = { DATABASE_URL: fixture.databaseUrl, MEDIA_FOLDER: fixture.folder, ...more };
  return startProgram('services/media-upload/admin.ts', { args, env }).ended;
}

test('the command lists the orphans, and deletes them only with --delete', async () => {
  await whole();
  const lost = await whole();
  await fixture.store.remove(`${lost.object}-original`);
  const line = `row without a file: ${lost.id} lacks ${lost.object}-original\n0 files without a row, 1 rows without a file.\n`;
  expect(await run(['sweep-media'])).toEqual({
    code: 0,
    stderr: '',
    stdout: `${line}Nothing was deleted. Use --delete to delete them.\n`,
  });
  expect(await run(['sweep-media', '--delete'])).toMatchObject({ code: 0, stdout: `${line}Deleted.\n` });
  expect(await findOrphans(fixture.files, fixture.store)).toEqual({ keys: [], rows: [] });
});

test('the command refuses an unknown option before it opens the stores', async () => {
  const open = () => Promise.reject(new Error('opened'));
  await expect(sweepMedia(['--all'], open)).rejects.toThrow(/^Unknown option '--all'/);
});

test('the command fails with one line and exit code 1', async () => {
  await whole();
  const elsewhere = join(fixture.folder, 'elsewhere');
  await mkdir(elsewhere);
  for (const [line, args, env] of [
    [
      /^admin: The store has no files, but the table has 1 rows: /,
      ['sweep-media', '--delete'],
      { MEDIA_FOLDER: elsewhere },
    ],
    [
      /^admin: The database is unavailable\. Retry later\. \(connect ECONNREFUSED 127\.0\.0\.1:1\)\n$/,
      ['sweep-media'],
      { DATABASE_URL: 'postgres://u@127.0.0.1:1/x' },
    ],
  ] as const) {
    const { code, stdout, stderr } = await run(args, env);
    expect(stderr).toMatch(line);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  }
});
