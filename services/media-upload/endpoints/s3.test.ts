import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type S3Server, startS3Server } from '../../../test/support/s3-server.ts';
import { createS3Store } from '../stores/s3.ts';
import type { Store } from '../stores/store.ts';
import * as corpus from '../testing/corpus.ts';
import { useService } from '../testing/service.ts';

let server: S3Server;
let store: Store;
beforeAll(async () => {
  server = await startS3Server();
  store = createS3Store({ ...server, region: 'us-east-1' });
}, 300_000);
afterAll(async () => {
  store?.close();
  await server?.stop();
});
const current = useService();

test('uploads a file to S3, serves it completely and in parts, and deletes it', async () => {
  const service = await current.start({ store });
  const { status, body } = await service.upload(await corpus.jpeg());
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

test('returns 503 and leaves nothing behind while S3 hangs; afterwards uploads succeed', async () => {
  const service = await current.start({ store });
  const bytes = await corpus.jpeg();
  server.pause();
  try {
    const refused = { status: 503, body: { error: 'service_unavailable' } };
    expect(await service.upload(bytes)).toMatchObject(refused);
    expect(await service.underWay()).toEqual([]);
  } finally {
    server.resume();
  }
  expect(await service.upload(bytes)).toMatchObject({ status: 201 });
});
