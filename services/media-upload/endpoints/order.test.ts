import { describe, expect, jest, test } from '@jest/globals';
import type { FileStore } from '../file-store.ts';
import { findOrphans } from '../sweep.ts';
import type { Store } from '../stores/store.ts';
import * as corpus from '../testing/corpus.ts';
import { useService } from '../testing/service.ts';

const current = useService();
const failure = () => Promise.reject(new Error('it broke'));

describe('files are stored before their row, and the row is deleted before the files', () => {
  test('leaves no file and no row when one file cannot be stored', async () => {
    let count = 0;
    const put: Store['put'] = (...args) =>
      (count += 1) === 3 ? failure() : current.fixture.store.put(...args);
    const service = await current.start({ store: { put } });
    expect(await service.upload(await corpus.jpeg())).toMatchObject({
      status: 500,
      body: { error: 'internal_error' },
    });
    expect(await current.keys()).toEqual([]);
    expect(await current.fixture.files.list(1)).toEqual([]);
    expect(await service.underWay()).toEqual([]);
    expect(await service.counted('failed')).toBe(1);
    expect(await service.upload(await corpus.jpeg())).toMatchObject({ status: 201 });
  });

  test('stores all files before the row', async () => {
    let before: string[] = [];
    const add: FileStore['add'] = async (file) => {
      before = await current.keys();
      return current.fixture.files.add(file);
    };
    const service = await current.start({ files: { add } });
    expect(await service.upload(await corpus.jpeg())).toMatchObject({ status: 201 });
    expect(before).toHaveLength(4);
    expect(await current.keys()).toEqual(before);
  });

  test('keeps the files when it is unknown whether the row was added', async () => {
    const add: FileStore['add'] = async (file) => {
      await current.fixture.files.add(file);
      return failure();
    };
    const service = await current.start({ files: { add } });
    const bytes = await corpus.jpeg();
    expect(await service.upload(bytes)).toMatchObject({ status: 500 });
    expect(await findOrphans(current.fixture.files, current.fixture.store)).toEqual({ keys: [], rows: [] });
    expect(await service.upload(bytes)).toMatchObject({ status: 200 });
  });

  test('the second upload of the same bytes returns the first file and leaves no files of its own', async () => {
    const service = await current.start({ files: { findUpload: () => Promise.resolve(undefined) } });
    const bytes = await corpus.jpeg();
    const first = await service.upload(bytes);
    expect(first.status).toBe(201);
    expect(await service.upload(bytes)).toMatchObject({ status: 200, body: first.body });
    expect(await current.keys()).toHaveLength(4);
    expect(await service.counted('existing')).toBe(1);
  });

  test('deleting succeeds while the store hangs', async () => {
    const service = await current.start({ store: { remove: () => new Promise<void>(() => undefined) } });
    const { body } = await service.upload(await corpus.jpeg());
    expect(await service.remove(body.id)).toBe(204);
    expect((await service.get(`/api/media/${body.id}/thumb`)).status).toBe(404);
  });

  test('returns 404 for a file that the store has lost; asks for no more bytes than it announces', async () => {
    const get = jest.fn(current.fixture.store.get);
    const service = await current.start({ store: { get } });
    const { body } = await service.upload(corpus.pdf);
    for (const key of await current.keys()) await current.fixture.store.remove(key);
    expect((await service.get(`/api/media/${body.id}/original`)).status).toBe(404);
    expect(get.mock.calls[0]![1]).toEqual({ start: 0, end: corpus.pdf.length - 1 });
  });
});

test('counts a refused upload and leaves nothing behind', async () => {
  const service = await current.start();
  expect((await service.upload(Buffer.from('text'))).status).toBe(415);
  expect(await service.counted('refused')).toBe(1);
  expect(await service.underWay()).toEqual([]);
  expect(await current.keys()).toEqual([]);
});

// test/faults/proof tests a disk that is really full, because only root can make one.
test('returns 503 and leaves nothing behind while the disk fails; uploads succeed once it works again', async () => {
  let reason: Error | undefined;
  const { store } = current.fixture;
  const service = await current.start({
    store: { put: (...args) => (reason ? Promise.reject(reason) : store.put(...args)) },
  });
  for (const message of [
    'ENOSPC: no space left on device, write',
    "EROFS: read-only file system, mkdir 'x'",
    'EIO: i/o error, read',
    "EMFILE: too many open files, open 'x'",
    // Of libvips.
    'wbuffer_write: write failed\nunix error: No space left on device',
  ]) {
    reason = new Error(message);
    const bytes = await corpus.jpeg(60 + message.length);
    const { status, body } = await service.upload(bytes);
    expect([message, status, body.error]).toEqual([message, 503, 'service_unavailable']);
    expect(await service.underWay()).toEqual([]);
    reason = undefined;
    expect(await service.upload(bytes)).toMatchObject({ status: 201 });
  }
});
