import { expect, test } from '@jest/globals';
import { within } from '../../test/support/wait.ts';
import type { FileStore } from './file-store.ts';
import { allKeysOf } from './media-file.ts';
import type { Store } from './stores/store.ts';
import { removePending } from './sweep.ts';
import * as corpus from './testing/corpus.ts';
import { newFile } from './testing/media-fixture.ts';
import { useService } from './testing/service.ts';

const current = useService();

const sql = (text: string) => current.fixture.sql(text);
const pending = () => sql('SELECT object, user_id FROM media.pending_object');

async function erase(...userIds: number[]) {
  await current.fixture.files.eraseUsers(userIds);
  await removePending(current.fixture.files, current.fixture.store);
}

test('erases the files of deleted users with all variants, and no others', async () => {
  const service = await current.start();
  for (const bytes of [await corpus.jpeg(), await corpus.image(50, 50).png().toBuffer(), corpus.pdf])
    expect((await service.upload(bytes)).status).toBe(201);
  expect((await service.upload(await corpus.jpeg(), 2)).status).toBe(201);
  expect(await current.keys()).toHaveLength(13);
  await erase(1, 3);
  expect(await current.keys()).toHaveLength(4);
  expect(await sql('SELECT DISTINCT user_id FROM media.file')).toEqual([{ user_id: '2' }]);
  expect(await pending()).toEqual([]);
  await erase(2);
  expect(await current.keys()).toEqual([]);
});

test('removes the files after a crash between the rows and the store', async () => {
  const { files, store } = current.fixture;
  await (await current.start()).upload(await corpus.jpeg());
  await files.eraseUsers([1]);
  expect(await sql('SELECT FROM media.file')).toEqual([]);
  // The first attempt after the crash fails in the middle.
  let left = 2;
  const remove: Store['remove'] = (key) =>
    (left -= 1) < 0 ? Promise.reject(new Error('broken')) : store.remove(key);
  await expect(removePending(files, { ...store, remove })).rejects.toThrow('broken');
  expect(await pending()).toHaveLength(1);
  await removePending(files, store);
  expect([await current.keys(), await pending()]).toEqual([[], []]);
});

test('cancels an upload in progress, and leaves none of its files', async () => {
  const { files } = current.fixture;
  const reached = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const add: FileStore['add'] = async (file) => {
    reached.resolve();
    await goOn.promise;
    return files.add(file);
  };
  const service = await current.start({ files: { add } });
  const upload = service.upload(await corpus.jpeg());
  await within('all files were put into the store', reached.promise);
  await erase(1);
  expect(await current.keys()).toEqual([]);
  goOn.resolve();
  expect(await upload).toMatchObject({ status: 401, body: { error: 'invalid_token' } });
  expect([await current.keys(), await files.list(1)]).toEqual([[], []]);
  expect(await pending()).toMatchObject([{ user_id: null }]);
});

test('removes what a crash left of an upload: at once if the user was deleted, otherwise after an hour', async () => {
  const { files, store, fileOf } = current.fixture;
  const [mine, other] = [newFile({ userId: 1 }), newFile({ userId: 2 })];
  for (const file of [mine, other]) {
    await files.begin(file);
    for (const key of allKeysOf(file.object)) await store.put(key, await fileOf(Buffer.from('x')));
  }
  await sql(`UPDATE media.pending_object SET created_at = now() - interval '59 min'`);
  await erase(1);
  expect(await current.keys()).toEqual(allKeysOf(other.object).toSorted());
  // The process may have crashed only from our view: what it stores later is removed, too.
  expect(await pending()).toHaveLength(2);
  await sql(`UPDATE media.pending_object SET created_at = now() - interval '61 min'`);
  await removePending(files, store);
  expect([await current.keys(), await pending()]).toEqual([[], []]);
});

test('refuses an upload that took so long that its files were removed as abandoned', async () => {
  const { files, store } = current.fixture;
  const add: FileStore['add'] = async (file) => {
    await sql(`UPDATE media.pending_object SET created_at = now() - interval '61 min'`);
    await removePending(files, store);
    return files.add(file);
  };
  const service = await current.start({ files: { add } });
  expect(await service.upload(await corpus.jpeg())).toMatchObject({ status: 503 });
  expect(await files.list(1)).toEqual([]);
});

test('an upload or a deletion that has ended leaves nothing pending', async () => {
  const service = await current.start();
  const { body } = await service.upload(await corpus.jpeg());
  expect(await pending()).toEqual([]);
  expect(await service.remove(body.id)).toBe(204);
  expect([await current.keys(), await pending()]).toEqual([[], []]);
});

test('keeps a deleted file pending whose files are in another store', async () => {
  const service = await current.start();
  const { body } = await service.upload(await corpus.jpeg());
  await sql(`UPDATE media.file SET store = 's3:uploads'`);
  expect(await service.remove(body.id)).toBe(204);
  expect(await pending()).toHaveLength(1);
});

test('removes the files of a deleted row later if the store failed', async () => {
  const { files, store } = current.fixture;
  const service = await current.start({ store: { remove: () => Promise.reject(new Error('broken')) } });
  const { body } = await service.upload(await corpus.jpeg());
  expect(await service.remove(body.id)).toBe(204);
  expect((await service.get(`/api/media/${body.id}/thumb`)).status).toBe(404);
  expect(await current.keys()).toHaveLength(4);
  await removePending(files, store);
  expect([await current.keys(), await pending()]).toEqual([[], []]);
});
