import { beforeAll, describe, expect, test } from '@jest/globals';
import { createHash, randomUUID } from 'node:crypto';
import { maxUploadBytes, upload, type MediaFile } from '@content-platform/contract';
import sharp from 'sharp';
import { newUser, tokenOf } from '../../../test/support/accounts.ts';
import { formOf, type FormPart } from '../../../test/support/form.ts';
import { download, fileOf, largeImage, newPdf, newImage, type Bytes } from '../../../test/support/media.ts';
import { database } from '../../../test/support/records.ts';
import { stack } from '../../../test/support/stack.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const example = await newImage();
let token: string;
beforeAll(async () => {
  token = await tokenOf(stack().gateway, 'user');
});

describeEndpoint(upload, { body: example }, ({ ask, send }) => {
  const sendForm = (parts: FormPart[], headers: Record<string, string> = {}) => {
    const { type, body } = formOf(parts);
    return send({ body, headers: { ...headers, 'Content-Type': type } });
  };
  const bytes = Buffer.from('x');

  test('converts an image into three WebP variants', async () => {
    const image = await largeImage(3000, 2000);
    const answer = await ask({ body: fileOf(image, 'Föhr "2".JPG') });
    expect(answer).toMatchObject({
      status: 201,
      body: {
        mime: 'image/jpeg',
        bytes: image.length,
        width: 3000,
        height: 2000,
        checksum: createHash('sha256').update(image).digest('hex'),
        placeholder: expect.stringMatching(/^[\w+/]+=*$/),
      },
    });
    const { id, variants } = answer.body as MediaFile;
    expect(variants.map(({ name, width, height }) => [name, width, height])).toEqual([
      ['thumb', 320, 213],
      ['medium', 1280, 853],
      ['large', 2560, 1707],
    ]);
    for (const { url, width, height, bytes, name } of variants) {
      expect(url).toBe(`${stack().gateway}/api/media/${id}/${name}`);
      const { status, body } = await download(url, token);
      expect([status, body.length]).toEqual([200, bytes]);
      expect(await sharp(body).metadata()).toMatchObject({ format: 'webp', width, height });
    }
  });

  test('stores a PDF unchanged', async () => {
    const pdf = newPdf();
    const answer = await ask({ body: fileOf(pdf, 'letter.pdf') });
    const nothing = { width: null, height: null };
    expect(answer).toMatchObject({
      status: 201,
      body: {
        mime: 'application/pdf',
        ...nothing,
        placeholder: null,
        variants: [{ name: 'original', bytes: pdf.length, ...nothing }],
      },
    });
    const { body } = await download((answer.body as MediaFile).variants[0]!.url, token);
    expect(body.equals(pdf)).toBe(true);
  });

  test('returns 200 with the existing file for the same bytes; another user gets a separate file', async () => {
    const image = await newImage();
    const first = await ask({ body: fileOf(image) });
    expect(first.status).toBe(201);
    const again = await ask({ body: fileOf(image, 'another name.png') });
    expect(again).toMatchObject({ status: 200, body: first.body });
    const other = await newUser();
    const theirs = await ask({ body: fileOf(image), token: other.token });
    expect(theirs.status).toBe(201);
    expect((theirs.body as MediaFile).id).not.toBe((first.body as MediaFile).id);
  });

  describe('with an Idempotency-Key', () => {
    const withKey = (key: string, image: Bytes) =>
      ask({ body: fileOf(image), headers: { 'Idempotency-Key': key } });

    test('repeats the reply for the same file; refuses another file', async () => {
      const key = randomUUID();
      const image = await newImage();
      const first = await withKey(key, image);
      expect(first.status).toBe(201);
      expect(await withKey(key, image)).toMatchObject({ status: 201, body: first.body });
      expect((await withKey(key, await newImage())).error?.error).toBe('idempotency_key_reused');
    });

    test('returns 409 while the first request is in progress', async () => {
      const [key, image] = [randomUUID(), await newImage()];
      expect((await withKey(key, image)).status).toBe(201);
      await database().query('UPDATE media.idempotency_key SET reply = NULL WHERE key = $1', [key]);
      expect((await withKey(key, image)).error).toMatchObject({ error: 'idempotency_key_in_use', code: 409 });
    });
  });

  test('returns 413 for a user who stores 1,000 files', async () => {
    const { id, token } = await newUser();
    const rows = `INSERT INTO media.file (user_id, object, checksum, mime, bytes, name, variants, store)
                  SELECT $1, gen_random_uuid(), sha256(n::text::bytea), 'application/pdf', 1, 'x.pdf', '[]', 'none'
                  FROM generate_series(1, 1000) AS n`;
    await database().query(rows, [id]);
    const { error } = await ask({ body: fileOf(await newImage()), token });
    expect(error).toMatchObject({ error: 'quota_exceeded', code: 413 });
    await database().query('DELETE FROM media.file WHERE user_id = $1', [id]);
  });

  test.each<[string, FormPart[]]>([
    ['no file', []],
    ['an empty file', [{ bytes: Buffer.alloc(0) }]],
    ['another field', [{ bytes, field: 'image' }]],
    ['two files', [{ bytes }, { bytes }]],
    ['text in its place', [{ bytes, name: null }]],
  ])('returns 422 for %s', async (_, parts) => {
    const { error } = await sendForm(parts);
    expect(error).toMatchObject({ error: 'validation_failed', details: [{ path: 'body.file' }] });
  });

  test('accepts 10 MB and refuses one byte more', async () => {
    const image = await newImage();
    const filled = (size: number) => Buffer.concat([image, Buffer.alloc(size - image.length)]);
    expect(await ask({ body: fileOf(filled(maxUploadBytes)) })).toMatchObject({ status: 201 });
    expect(await ask({ body: fileOf(filled(maxUploadBytes + 1)) })).toMatchObject({
      status: 413,
      error: { error: 'payload_too_large' },
    });
  });

  test('treats the file name as data', async () => {
    const { body } = await ask({ body: fileOf(await newImage(), '../../../etc/pass\u202ewd') });
    const { headers } = await download((body as MediaFile).variants[0]!.url, token);
    expect(headers.get('content-disposition')).toContain('filename="passwd.webp"');
  });

  test('ignores the file type that the client claims', async () => {
    const page = Buffer.from('<html><script>alert(1)</script>');
    const { error } = await sendForm([{ bytes: page, name: 'x.jpg"\r\nContent-Type: image/jpeg\r\nX: "' }]);
    expect(error?.error).toBe('unsupported_media_type');
  });

  test('refuses animations, too many pixels and truncated images', async () => {
    const raw = { width: 8, height: 16, channels: 3, pageHeight: 8 } as const;
    const gif = await sharp(Buffer.alloc(8 * 16 * 3, 0).fill(255, 0, 192), { raw })
      .gif()
      .toBuffer();
    expect((await ask({ body: fileOf(gif as Bytes) })).error?.error).toBe('animated_image');
    const create = { width: 6_000, height: 5_000, channels: 3, background: 'red' } as const;
    const large = await sharp({ create }).png().toBuffer();
    expect((await ask({ body: fileOf(large as Bytes) })).error?.error).toBe('image_too_large');
    const cut = (await newImage(600, 400)).subarray(0, 20_000);
    expect((await ask({ body: fileOf(cut) })).error?.error).toBe('unreadable_file');
  });
});
