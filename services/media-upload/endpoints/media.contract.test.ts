import { beforeAll, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { newUser, tokenOf, type OwnUser } from '../../../test/support/accounts.ts';
import { download, newPdf, newImage, uploaded } from '../../../test/support/media.ts';
import { stack } from '../../../test/support/stack.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

let token: string;
let image: contract.MediaFile;
let pdf: contract.MediaFile;
let other: OwnUser;
let theirs: contract.MediaFile;
beforeAll(async () => {
  token = await tokenOf(stack().gateway, 'user');
  image = await uploaded(token, await newImage(), 'Föhr (1).JPG');
  pdf = await uploaded(token, newPdf(), 'letter "A".pdf');
  other = await newUser();
  theirs = await uploaded(other.token, await newImage());
});

const nobodys = Number.MAX_SAFE_INTEGER;

describeEndpoint(contract.listMedia, {}, ({ ask }) => {
  test("lists the user's own files, newest first, in pages", async () => {
    const user = await newUser();
    const mine: contract.MediaFile[] = [];
    for (const _ of [1, 2, 3]) mine.unshift(await uploaded(user.token, await newImage()));
    expect((await ask({ token: user.token })).body).toEqual({ items: mine, next_cursor: null });
    const first = await ask({ token: user.token, query: { limit: 2 } });
    expect(first.body!.items).toEqual(mine.slice(0, 2));
    const cursor = first.body!.next_cursor!;
    const second = await ask({ token: user.token, query: { limit: 2, cursor } });
    expect(second.body).toEqual({ items: mine.slice(2), next_cursor: null });
  });
});

describeEndpoint(contract.readMedia, { path: '/api/media/1', as: 'user' }, ({ ask }) => {
  test('returns the file as the upload did', async () => {
    for (const file of [image, pdf])
      expect(await ask({ params: { id: file.id } })).toMatchObject({ status: 200, body: file });
  });
  test("returns the same 404 for another user's file and an unknown file", async () => {
    const [their, none] = [await ask({ params: { id: theirs.id } }), await ask({ params: { id: nobodys } })];
    expect(their.status).toBe(404);
    expect({ ...their.error, request_id: '' }).toEqual({ ...none.error, request_id: '' });
  });
});

describeEndpoint(contract.deleteMedia, {}, ({ ask }) => {
  test('deletes the file with its variants; the same image can be uploaded again', async () => {
    const bytes = await newImage();
    const file = await uploaded(token, bytes);
    expect(await ask({ params: { id: file.id } })).toMatchObject({ status: 204 });
    expect(await ask({ params: { id: file.id } })).toMatchObject({ status: 404 });
    for (const { url } of file.variants) expect((await download(url, token)).status).toBe(404);
    const again = await uploaded(token, bytes);
    expect(again.id).not.toBe(file.id);
    expect((await download(again.variants[0]!.url, token)).status).toBe(200);
  });
});

const badVariants = { paths: ['tiny', 'thumb.webp', 'THUMB'].map((variant) => `/api/media/1/${variant}`) };

const readVariantExample = { path: '/api/media/1/thumb', as: 'user', invalid: badVariants } as const;
describeEndpoint(contract.readVariant, readVariantExample, ({ ask }) => {
  const large = () => image.variants.find(({ name }) => name === 'large')!;
  const params = () => ({ id: image.id, variant: 'large' });
  const etagOf = async () => (await ask({ params: params() })).headers.get('etag')!;

  test('serves an image inline under a sandbox policy', async () => {
    const { status, headers } = await ask({ params: params() });
    expect(status).toBe(200);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'image/webp',
      'content-length': String(large().bytes),
      'content-disposition': `inline; filename="F_hr (1).webp"; filename*=UTF-8''F%C3%B6hr%20%281%29.webp`,
      'cache-control': 'private, max-age=31536000, immutable',
      vary: 'Origin, Authorization',
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
    });
  });

  test('HEAD returns the length of the whole file even with a Range header', async () => {
    const headers = { Authorization: `Bearer ${token}`, Range: 'bytes=0-9' };
    const head = await fetch(large().url, { method: 'HEAD', headers });
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(large().bytes)]);
  });

  test('serves a PDF as an attachment', async () => {
    const { status, headers } = await ask({ params: { id: pdf.id, variant: 'original' } });
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/pdf');
    expect(headers.get('content-disposition')).toBe(
      `attachment; filename="letter _22A_22.pdf"; filename*=UTF-8''letter%20%2522A%2522.pdf`,
    );
  });

  test('gives each variant its own ETag; returns 304 for the current one', async () => {
    const etag = await etagOf();
    expect(etag).toMatch(/^"[^"]+"$/);
    expect((await ask({ params: { id: image.id, variant: 'thumb' } })).headers.get('etag')).not.toBe(etag);
    for (const sent of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await ask({ params: params(), headers: { 'If-None-Match': sent } });
      expect(answer.status).toBe(304);
      expect(answer.headers.get('etag')).toBe(etag);
      expect(answer.headers.get('cache-control')).toContain('immutable');
    }
    expect(await ask({ params: params(), headers: { 'If-None-Match': '"other"' } })).toMatchObject({
      status: 200,
    });
  });

  test('returns the requested range, or 416', async () => {
    const { body: all } = await download(large().url, token);
    const { status, headers, body } = await download(large().url, token, { Range: 'bytes=5-14' });
    expect(status).toBe(206);
    expect(body.equals(all.subarray(5, 15))).toBe(true);
    expect(headers.get('content-range')).toBe(`bytes 5-14/${all.length}`);
    expect(headers.get('content-length')).toBe('10');
    const none = await ask({ params: params(), headers: { Range: 'bytes=999999999-' } });
    expect(none).toMatchObject({ status: 416, error: { error: 'range_not_satisfiable' } });
    expect(none.headers.get('content-range')).toBe(`bytes */${large().bytes}`);
  });

  test('If-Range: returns the range for the current ETag, else the whole file', async () => {
    const etag = await etagOf();
    const ranged = (ifRange: string) =>
      ask({ params: params(), headers: { Range: 'bytes=0-9', 'If-Range': ifRange } });
    expect(await ranged(etag)).toMatchObject({ status: 206 });
    for (const stale of ['"other"', `W/${etag}`, 'Sat, 21 Nov 2026 00:00:00 GMT'])
      expect(await ranged(stale)).toMatchObject({ status: 200 });
  });

  test('returns the same 404 for a file of another user, an unknown file, an original and a missing variant', async () => {
    const answers = [];
    for (const [id, variant] of [
      [theirs.id, 'thumb'],
      [nobodys, 'thumb'],
      [image.id, 'original'],
      [pdf.id, 'thumb'],
    ] as const) {
      const { status, error } = await ask({ params: { id, variant } });
      expect(status).toBe(404);
      answers.push({ ...error, request_id: '' });
    }
    for (const answer of answers) expect(answer).toEqual(answers[0]);
  });
});
