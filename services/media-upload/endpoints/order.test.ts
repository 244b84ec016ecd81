import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { FileStore } from '../file-store.ts';
import { findStrays } from '../sweep.ts';
import type { Store } from '../stores/store.ts';
import * as corpus from '../testing/corpus.ts';
import { newFile, setScene, type Scene } from '../testing/scene.ts';
import { startService, type TestService } from '../testing/service.ts';

let scene: Scene;
const services: TestService[] = [];
beforeEach(async () => {
  scene = await setScene();
});
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.stop()));
  await scene.close();
});

async function serviceOver({
  store = {},
  files = {},
}: {
  store?: Partial<Store>;
  files?: Partial<FileStore>;
}) {
  const over = { ...scene, files: { ...scene.files, ...files } };
  const service = await startService(over, { ...scene.store, ...store });
  services.push(service);
  return service;
}

async function keys(): Promise<string[]> {
  const all: string[] = [];
  for await (const { key } of scene.store.list()) all.push(key);
  return all;
}

const jpeg = () => corpus.picture(60, 40).jpeg().toBuffer() as Promise<Buffer<ArrayBuffer>>;
const failure = () => Promise.reject(new Error('it broke'));

describe('a crash at any line loses nothing: files first, then the row; the row goes first', () => {
  test('a file that cannot be kept leaves no other, and no row', async () => {
    let count = 0;
    const put: Store['put'] = (...args) => ((count += 1) === 3 ? failure() : scene.store.put(...args));
    const service = await serviceOver({ store: { put } });
    expect(await service.upload(await jpeg())).toMatchObject({
      status: 500,
      body: { error: 'internal_error' },
    });
    expect(await keys()).toEqual([]);
    expect(await scene.files.list(1)).toEqual([]);
    expect(await service.underWay()).toEqual([]);
    expect(await service.counted('failed')).toBe(1);
    expect(await service.upload(await jpeg())).toMatchObject({ status: 201 });
  });

  test('all files are there before the row is', async () => {
    let before: string[] = [];
    const add: FileStore['add'] = async (file) => {
      before = await keys();
      return scene.files.add(file);
    };
    const service = await serviceOver({ files: { add } });
    expect(await service.upload(await jpeg())).toMatchObject({ status: 201 });
    expect(before).toHaveLength(4);
    expect((await keys()).toSorted()).toEqual(before.toSorted());
  });

  test('a row whose fate is unknown keeps its files', async () => {
    const add: FileStore['add'] = async (file) => {
      await scene.files.add(file);
      return failure();
    };
    const service = await serviceOver({ files: { add } });
    const bytes = await jpeg();
    expect(await service.upload(bytes)).toMatchObject({ status: 500 });
    expect(await findStrays(scene.files, scene.store)).toEqual({ keys: [], rows: [] });
    expect(await service.upload(bytes)).toMatchObject({ status: 200 });
  });

  test("who comes second with the same bytes gets the first one's file, and leaves none", async () => {
    const service = await serviceOver({ files: { findUpload: () => Promise.resolve(undefined) } });
    const bytes = await jpeg();
    const first = await service.upload(bytes);
    expect(first.status).toBe(201);
    expect(await service.upload(bytes)).toMatchObject({ status: 200, body: first.body });
    expect(await keys()).toHaveLength(4);
    expect(await service.counted('existing')).toBe(1);
  });

  test('a deleted file is gone, even when the store keeps it for a while', async () => {
    const service = await serviceOver({ store: { remove: failure } });
    const { body } = await service.upload(await jpeg());
    expect(await service.remove(body.id)).toBe(204);
    expect((await service.get(`/api/media/${body.id}/thumb`)).status).toBe(404);
    expect(await keys()).toHaveLength(4);
  });

  test('a store that hangs keeps nobody waiting who deletes', async () => {
    const service = await serviceOver({ store: { remove: () => new Promise<void>(() => undefined) } });
    const { body } = await service.upload(await jpeg());
    expect(await service.remove(body.id)).toBe(204);
    expect((await service.get(`/api/media/${body.id}/thumb`)).status).toBe(404);
  }, 30_000);

  test('a file that the store has lost: 404', async () => {
    const service = await serviceOver({});
    const { id } = await scene.files.add(newFile());
    expect((await service.get(`/api/media/${id}/original`)).status).toBe(404);
  });

  test('a file that was added and deleted by another in between is added', async () => {
    const file = newFile();
    const first = await scene.files.add(file);
    const adding = scene.files.add({ ...file, object: newFile().object });
    expect((await adding).id).toBe(first.id);
    await scene.files.remove(1, first.id);
    const again = await scene.files.add(file);
    expect(again.id).not.toBe(first.id);
  });
});

test('what is refused is counted, and leaves nothing', async () => {
  const service = await serviceOver({});
  expect((await service.upload(Buffer.from('text'))).status).toBe(415);
  expect(await service.counted('refused')).toBe(1);
  expect(await service.underWay()).toEqual([]);
  expect(await keys()).toEqual([]);
});
