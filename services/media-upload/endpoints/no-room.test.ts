import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Store } from '../stores/store.ts';
import * as corpus from '../testing/corpus.ts';
import { setScene, type Scene } from '../testing/scene.ts';
import { startService, type TestService } from '../testing/service.ts';

let scene: Scene;
let service: TestService;
/** Why nothing can be put. */
let reason: Error | undefined;
let width = 70;
beforeAll(async () => {
  scene = await setScene();
  const put: Store['put'] = (...args) => (reason ? Promise.reject(reason) : scene.store.put(...args));
  service = await startService(scene, { ...scene.store, put });
});
afterAll(async () => {
  await service.stop();
  await scene.close();
});

// A disk that is really full is for test/faults/proof: only root can make one.
test.each([
  ['is full', Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })],
  ['is read-only', Object.assign(new Error("EROFS: read-only file system, mkdir 'x'"), { code: 'EROFS' })],
  ['is broken', Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' })],
  [
    'cannot be opened, as the process has too many open files',
    Object.assign(new Error("EMFILE: too many open files, open 'x'"), { code: 'EMFILE' }),
  ],
  [
    'is full, in the words of libvips',
    new Error('wbuffer_write: write failed\nunix error: No space left on device'),
  ],
])(
  'a disk that %s: returns 503 and leaves nothing behind, and uploads succeed once it works again',
  async (_, why) => {
    // Another one each time: what is there already needs no room.
    const bytes = (await corpus
      .picture((width += 1), 40)
      .jpeg()
      .toBuffer()) as Buffer<ArrayBuffer>;
    reason = why;
    expect(await service.upload(bytes)).toMatchObject({
      status: 503,
      body: { error: 'service_unavailable' },
    });
    expect(await service.underWay()).toEqual([]);
    reason = undefined;
    expect([200, 201]).toContain((await service.upload(bytes)).status);
  },
);
