import { describe, expect, test } from '@jest/globals';
import type { FileStore } from '../file-store.ts';
import { findStrays } from '../sweep.ts';
import type { Store } from '../stores/store.ts';
import * as corpus from '../testing/corpus.ts';
import { newFile } from '../testing/scene.ts';
import { useService } from '../testing/service.ts';

const current = useService();
const failure = () => Promise.reject(new Error('it broke'));

describe('a crash at any line loses nothing: files first, then the row; the row goes first', () => {
  test('a file that cannot be kept leaves no other, and no row', async () => {
    let count = 0;
    const put: Store['put'] = (...args) =>
      (count += 1) === 3 ? failure() : current.scene.store.put(...args);
    const service = await current.start({ store: { put } });
    expect(await service.upload(await corpus.jpeg())).toMatchObject({
      status: 500,
      body: { error: 'internal_error' },
    });
    expect(await current.keys()).toEqual([]);
    expect(await current.scene.files.list(1)).toEqual([]);
    expect(await service.underWay()).toEqual([]);
    expect(await service.counted('failed')).toBe(1);
    expect(await service.upload(await corpus.jpeg())).toMatchObject({ status: 201 });
  });

  test('all files are there before the row is', async () => {
    let before: string[] = [];
    const add: FileStore['add'] = async (file) => {
      before = await current.keys();
      return current.scene.files.add(file);
    };
    const service = await current.start({ files: { add } });
    expect(await service.upload(await corpus.jpeg())).toMatchObject({ status: 201 });
    expect(before).toHaveLength(4);
    expect(await current.keys()).toEqual(before);
  });

  test('a row whose fate is unknown keeps its files', async () => {
    const add: FileStore['add'] = async (file) => {
      await current.scene.files.add(file);
      return failure();
    };
    const service = await current.start({ files: { add } });
    const bytes = await corpus.jpeg();
    expect(await service.upload(bytes)).toMatchObject({ status: 500 });
    expect(await findStrays(current.scene.files, current.scene.store)).toEqual({ keys: [], rows: [] });
    expect(await service.upload(bytes)).toMatchObject({ status: 200 });
  });

  test("who comes second with the same bytes gets the first one's file, and leaves none", async () => {
    const service = await current.start({ files: { findUpload: () => Promise.resolve(undefined) } });
    const bytes = await corpus.jpeg();
    const first = await service.upload(bytes);
    expect(first.status).toBe(201);
    expect(await service.upload(bytes)).toMatchObject({ status: 200, body: first.body });
    expect(await current.keys()).toHaveLength(4);
    expect(await service.counted('existing')).toBe(1);
  });

  test('a deleted file is gone, even when the store keeps it for a while', async () => {
    const service = await current.start({ store: { remove: failure } });
    const { body } = await service.upload(await corpus.jpeg());
    expect(await service.remove(body.id)).toBe(204);
    expect((await service.get(`/api/media/${body.id}/thumb`)).status).toBe(404);
    expect(await current.keys()).toHaveLength(4);
  });

  test('a store that hangs keeps nobody waiting who deletes', async () => {
    const service = await current.start({ store: { remove: () => new Promise<void>(() => undefined) } });
    const { body } = await service.upload(await corpus.jpeg());
    expect(await service.remove(body.id)).toBe(204);
    expect((await service.get(`/api/media/${body.id}/thumb`)).status).toBe(404);
  });

  test('a file that the store has lost: 404', async () => {
    const service = await current.start();
    const { id } = await current.scene.files.add(newFile());
    expect((await service.get(`/api/media/${id}/original`)).status).toBe(404);
  });

  test('a file that was added and deleted by another in between is added', async () => {
    const file = newFile();
    const first = await current.scene.files.add(file);
    const adding = current.scene.files.add({ ...file, object: newFile().object });
    expect((await adding).id).toBe(first.id);
    await current.scene.files.remove(1, first.id);
    const again = await current.scene.files.add(file);
    expect(again.id).not.toBe(first.id);
  });
});

test('what is refused is counted, and leaves nothing', async () => {
  const service = await current.start();
  expect((await service.upload(Buffer.from('text'))).status).toBe(415);
  expect(await service.counted('refused')).toBe(1);
  expect(await service.underWay()).toEqual([]);
  expect(await current.keys()).toEqual([]);
});
