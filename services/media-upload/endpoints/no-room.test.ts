import { expect, test } from '@jest/globals';
import * as corpus from '../testing/corpus.ts';
import { useService } from '../testing/service.ts';

const current = useService();

// test/faults/proof tests a disk that is really full, because only root can make one.
test.each([
  ['is full', Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })],
  ['is read-only', Object.assign(new Error("EROFS: read-only file system, mkdir 'x'"), { code: 'EROFS' })],
  ['is broken', Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' })],
  [
    'cannot be opened because of too many open files',
    Object.assign(new Error("EMFILE: too many open files, open 'x'"), { code: 'EMFILE' }),
  ],
  [
    'is full, with the message of libvips',
    new Error('wbuffer_write: write failed\nunix error: No space left on device'),
  ],
])(
  'returns 503 and leaves nothing behind while the disk %s; uploads succeed once the disk works again',
  async (_, why) => {
    let reason: Error | undefined = why;
    const { store } = current.scene;
    const service = await current.start({
      store: { put: (...args) => (reason ? Promise.reject(reason) : store.put(...args)) },
    });
    const bytes = await corpus.jpeg();
    const refused = { status: 503, body: { error: 'service_unavailable' } };
    expect(await service.upload(bytes)).toMatchObject(refused);
    expect(await service.underWay()).toEqual([]);
    reason = undefined;
    expect(await service.upload(bytes)).toMatchObject({ status: 201 });
  },
);
