import { expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { useService } from '../testing/service.ts';

const current = useService();
const quota = { bytes: Infinity, files: 3 };

/** A PDF of this many bytes. */
const pdf = (size = 1_000) =>
  Buffer.concat([Buffer.from('%PDF-1.4\n'), randomBytes(size - 16), Buffer.from('\n%%EOF\n')]);

test('refuses a file beyond the number of files, before it is processed, and stores nothing', async () => {
  const { upload, processed } = await current.start({ quota });
  for (let n = 0; n < 3; n += 1) expect((await upload(pdf())).status).toBe(201);
  const keys = await current.keys();
  const before = processed();
  expect(await upload(pdf())).toMatchObject({ status: 413, body: { error: 'quota_exceeded' } });
  expect(processed()).toBe(before);
  expect(await current.keys()).toEqual(keys);
  expect((await upload(pdf(), 2)).status).toBe(201);
});

test('does not count a repeated upload of a file; a deletion makes room', async () => {
  const { upload, remove } = await current.start({ quota });
  const mine = pdf();
  const { body } = await upload(mine);
  for (let n = 0; n < 2; n += 1) await upload(pdf());
  expect((await upload(mine)).status).toBe(200);
  expect((await upload(pdf())).status).toBe(413);
  await remove(body.id);
  expect((await upload(pdf())).status).toBe(201);
});

test('refuses a file beyond the number of bytes', async () => {
  const { upload } = await current.start({ quota: { bytes: 5_000, files: Infinity } });
  expect((await upload(pdf(4_000))).status).toBe(201);
  expect((await upload(pdf(1_001))).status).toBe(413);
  expect((await upload(pdf(1_000))).status).toBe(201);
});

test('stores only as many concurrent uploads as the quota allows', async () => {
  const { upload } = await current.start({ quota });
  const replies = await Promise.all(Array.from({ length: 8 }, () => upload(pdf())));
  expect(replies.filter(({ status }) => status === 201)).toHaveLength(3);
  expect(replies.filter(({ status }) => status === 413)).toHaveLength(5);
  expect(await current.keys()).toHaveLength(3);
});
