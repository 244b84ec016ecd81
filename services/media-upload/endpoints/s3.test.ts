import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type S3Server, startS3Server } from '../../../test/support/s3-server.ts';
import { createS3Store } from '../stores/s3.ts';
import type { Store } from '../stores/store.ts';
import * as corpus from '../testing/corpus.ts';
import { setScene, type Scene } from '../testing/scene.ts';
import { startService, type TestService } from '../testing/service.ts';

let server: S3Server;
let store: Store;
let scene: Scene;
let service: TestService;
beforeAll(async () => {
  [server, scene] = await Promise.all([startS3Server(), setScene()]);
  store = createS3Store({ ...server, region: 'us-east-1' });
  service = await startService(scene, store);
}, 300_000);
afterAll(async () => {
  await service?.stop();
  await scene?.close();
  store?.close();
  await server?.stop();
});

test('with S3: uploaded, served whole and in parts, deleted', async () => {
  const bytes = (await corpus.picture(600, 400).jpeg().toBuffer()) as Buffer<ArrayBuffer>;
  const { status, body } = await service.upload(bytes);
  expect(status).toBe(201);
  const path = `/api/media/${body.id}/large`;
  const whole = await service.get(path);
  expect(whole.status).toBe(200);
  expect(whole.body.subarray(8, 12).toString()).toBe('WEBP');
  const part = await service.get(path, { Range: 'bytes=8-11' });
  expect({ ...part, body: part.body.toString() }).toEqual({ status: 206, body: 'WEBP' });
  expect(await service.remove(body.id)).toBe(204);
  for await (const { key } of store.list()) throw new Error(`${key} is left`);
});

test('with S3 away: 503, nothing is left behind, and it goes on when it is back', async () => {
  const bytes = (await corpus.picture(300, 400).jpeg().toBuffer()) as Buffer<ArrayBuffer>;
  server.pause();
  try {
    expect(await service.upload(bytes)).toMatchObject({
      status: 503,
      body: { error: 'service_unavailable' },
    });
    expect(await service.underWay()).toEqual([]);
  } finally {
    server.resume();
  }
  expect(await service.upload(bytes)).toMatchObject({ status: 201 });
});
