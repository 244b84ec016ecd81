import { beforeAll, describe, expect, test } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import sharp from 'sharp';
import { useStarted } from '../../../test/support/use-started.ts';
import * as corpus from '../testing/corpus.ts';
import { createTestPool } from '../testing/pools.ts';
import { inspect, isPngBomb } from './inspect.ts';

const pool = useStarted(createTestPool);
let valid: Record<string, Buffer>;
beforeAll(async () => void (valid = await corpus.validImages()));

const types = ['image/jpeg', 'image/png', 'image/webp', 'image/gif', 'image/avif'];

async function imageOf(bytes: Buffer) {
  const job = await pool.jobOf(bytes);
  const outcome = await pool.run(job, new AbortController().signal);
  if (outcome.kind !== 'image') throw new Error(JSON.stringify(outcome));
  const variants = outcome.variants.map((made) => ({ ...made, path: join(job.folder, made.name) }));
  return { ...outcome, variants };
}

const refused = (refusal: string) => ({ kind: 'refused', refusal });

const solid = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: 'red' } });

/** Returns the average colour of a part of an image: [left, top] in tenths. */
async function colourAt(path: string, [left, top]: readonly [number, number]): Promise<number[]> {
  const { width, height } = await sharp(path).metadata();
  const part = {
    left: Math.floor((width * left) / 10),
    top: Math.floor((height * top) / 10),
    width: Math.ceil(width / 10),
    height: Math.ceil(height / 10),
  };
  const { channels } = await sharp(await sharp(path).extract(part).png().toBuffer()).stats();
  return channels.map(({ mean }) => Math.round(mean));
}

describe('accepts', () => {
  test.each(types)('%s, as three WebP variants that are no larger than the image', async (mime) => {
    const made = await imageOf(valid[mime]!);
    expect(made).toMatchObject({ mime, width: 300, height: 200 });
    expect(made.placeholder).toMatch(/^[\w+/]{20,40}=*$/);
    expect(made.variants.map(({ name, width, height }) => [name, width, height])).toEqual([
      ['thumb', 300, 200],
      ['medium', 300, 200],
      ['large', 300, 200],
    ]);
    for (const { path, width, height } of made.variants)
      expect(await sharp(path).metadata()).toMatchObject({ format: 'webp', width, height, space: 'srgb' });
  });

  test('a large image: the longest sides of its variants are 320, 1280 and 2560 pixels', async () => {
    const made = await imageOf(await solid(1500, 3000).jpeg().toBuffer());
    expect(made.variants.map(({ width, height }) => [width, height])).toEqual([
      [160, 320],
      [640, 1280],
      [1280, 2560],
    ]);
  });

  test.each(['srgb', 'p3', 'rgb16'])('an image in %s without changing its colours', async (space) => {
    const source = corpus.image(900, 600);
    const [depth, profile] = space === 'rgb16' ? [space, 'p3'] : ['srgb', space];
    const image = source
      .clone()
      .toColourspace(depth)
      .withIccProfile(profile, { attach: space !== 'srgb' });
    const made = await imageOf(await image.png().toBuffer());
    const expected = await sharp(await source.png().toBuffer()).stats();
    for (const { path } of made.variants) {
      const { channels } = await sharp(path).stats();
      const off = channels.map(({ mean }, index) => Math.abs(mean - expected.channels[index]!.mean));
      expect(Math.max(...off)).toBeLessThan(3);
    }
  });

  // The stored image of a camera in each orientation (EXIF 2.32, tag 274): quarter turns, then perhaps mirrored.
  test.each([
    [1, 0, false],
    [2, 0, true],
    [3, 2, false],
    [4, 2, true],
    [5, 1, true],
    [6, 3, false],
    [7, 3, true],
    [8, 1, false],
  ])('EXIF orientation %d becomes upright', async (orientation, quarters, isMirrored) => {
    const red = { create: { width: 100, height: 50, channels: 3, background: 'red' } } as const;
    const white = sharp({ create: { width: 400, height: 200, channels: 3, background: 'white' } });
    const upright = await white
      .composite([{ input: red, left: 0, top: 0 }])
      .png()
      .toBuffer();
    const rotated = await sharp(upright)
      .rotate(quarters * 90)
      .toBuffer();
    const turned = await sharp(rotated).flop(isMirrored).toBuffer();
    const made = await imageOf(await sharp(turned).withMetadata({ orientation }).jpeg().toBuffer());
    expect(made).toMatchObject({ width: 400, height: 200 });
    for (const { path, width, height } of made.variants) {
      expect(width).toBe(2 * height);
      const [red, green] = await colourAt(path, [0.5, 0.5]);
      expect(red! - green!).toBeGreaterThan(200);
      const corners = [colourAt(path, [9, 0]), colourAt(path, [0, 9]), colourAt(path, [9, 9])];
      for (const corner of await Promise.all(corners)) expect(corner[1]).toBeGreaterThan(230);
      expect((await sharp(path).metadata()).orientation).toBeUndefined();
    }
  });

  test.each<[string, () => Promise<Buffer>, number]>([
    ['CMYK', () => corpus.image(300, 200).toColourspace('cmyk').jpeg().toBuffer(), 3],
    ['16 bit', () => corpus.image(300, 200).toColourspace('rgb16').png().toBuffer(), 3],
    ['16 bit with alpha', () => corpus.image(300, 200, 4).toColourspace('rgb16').png().toBuffer(), 4],
    ['grey', () => corpus.image(300, 200, 1).toColourspace('b-w').jpeg().toBuffer(), 3],
    ['grey with 16 bit', () => corpus.image(300, 200, 1).toColourspace('grey16').png().toBuffer(), 3],
    ['grey with alpha', () => corpus.image(300, 200, 2).toColourspace('b-w').png().toBuffer(), 4],
    ['a palette', () => corpus.image(300, 200).png({ palette: true }).toBuffer(), 3],
    ['interlaced', () => corpus.image(300, 200).png({ progressive: true }).toBuffer(), 3],
    ['progressive', () => corpus.image(300, 200).jpeg({ progressive: true }).toBuffer(), 3],
    ['1 × 1', () => corpus.image(1, 1).png().toBuffer(), 3],
    ['10000 × 1', () => corpus.image(10_000, 1).png().toBuffer(), 3],
    ['1 × 10000', () => corpus.image(1, 10_000).jpeg().toBuffer(), 3],
    ['one frame of a GIF', () => corpus.image(30, 20, 4).gif().toBuffer(), 4],
  ])('%s becomes sRGB with 8 bits', async (_, make, channels) => {
    const made = await imageOf(await make());
    expect(made.variants).toHaveLength(3);
    for (const { path } of made.variants) {
      const metadata = await sharp(path).metadata();
      expect(metadata).toMatchObject({ space: 'srgb', depth: 'uchar', channels, hasProfile: false });
    }
  });

  test('24 megapixels as camera makers count them, but not one row more', async () => {
    expect(await imageOf(await corpus.blackPng(5712, 4284))).toMatchObject({ width: 5712 });
    // A thousandth of a byte for each pixel.
    const dense = corpus.blackPng(6144, 4096);
    expect(dense.length).toBeLessThan(24 * 1_100);
    expect(await pool.process(dense)).toMatchObject({ kind: 'image' });
    expect(await pool.process(corpus.blackPng(6144, 4097))).toEqual(refused('image_too_large'));
    expect(await pool.process(corpus.blackPng(16_384, 1))).toEqual(refused('image_too_large'));
    const deep = await solid(4_096, 3_073).toColourspace('rgb16').png().toBuffer();
    expect(await pool.process(deep)).toEqual(refused('image_too_large'));
  });

  test('bytes after the end of an image', async () => {
    for (const [mime, bytes] of Object.entries(valid)) {
      const longer = Buffer.concat([bytes, corpus.html, Buffer.alloc(10_000, 'x')]);
      expect(await pool.process(longer)).toMatchObject({ kind: 'image', mime });
    }
  });

  test('a PDF, unchanged', async () => {
    expect(await pool.process(corpus.pdf)).toEqual({ kind: 'pdf', mime: 'application/pdf' });
    const withHtml = Buffer.concat([corpus.pdf.subarray(0, 20), corpus.html, corpus.pdf.subarray(20)]);
    expect(await pool.process(withHtml)).toEqual({ kind: 'pdf', mime: 'application/pdf' });
  });
});

test('variants contain no metadata: GPS, names, profiles, comments', async () => {
  const source = corpus
    .image(300, 200)
    .withExif({
      IFD0: { Artist: 'Secret Name', ImageDescription: 'secret place' },
      IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '52/1 31/1 0/1' },
    })
    .withXmp('<x:xmpmeta xmlns:x="adobe:ns:meta/">secret packet</x:xmpmeta>')
    .withIccProfile('p3');
  for (const bytes of [
    await source.clone().jpeg().toBuffer(),
    await source.clone().png().toBuffer(),
    await source.clone().webp().toBuffer(),
    await source.clone().avif({ effort: 1 }).toBuffer(),
  ]) {
    expect((await sharp(bytes).metadata()).exif).toBeDefined();
    for (const { path } of (await imageOf(bytes)).variants) {
      const metadata = await sharp(path).metadata();
      for (const kind of ['exif', 'xmp', 'iptc', 'icc', 'comments', 'orientation'] as const)
        expect(metadata[kind]).toBeUndefined();
      expect(await readFile(path, 'latin1')).not.toMatch(/secret/i);
    }
  }
});

describe('refuses', () => {
  test.each(Object.keys(corpus.others))('%s', async (name) => {
    expect(await pool.process(corpus.others[name]!)).toEqual(refused('unsupported_media_type'));
  });

  test('animations', async () => {
    const avif = Buffer.from(valid['image/avif']!);
    avif.write('avis', 8, 'latin1');
    const animations = [await corpus.animation('gif'), await corpus.animation('webp')];
    for (const bytes of [...animations, corpus.apng(valid['image/png']!), avif])
      expect(await pool.process(bytes)).toEqual(refused('animated_image'));
  });

  test.each([...types, 'application/pdf'])('%s, cut off at each tenth', async (mime) => {
    const bytes = valid[mime] ?? corpus.pdf;
    for (let tenths = 1; tenths < 10; tenths += 1) {
      const outcome = await pool.process(bytes.subarray(0, (bytes.length * tenths) / 10));
      expect([refused('unreadable_file'), refused('unsupported_media_type')]).toContainEqual(outcome);
    }
  });

  test('a PNG whose checksums are wrong', async () => {
    const png = valid['image/png']!;
    for (const place of ['IHDR', 'IDAT']) {
      const broken = Buffer.from(png);
      const at = broken.indexOf(place) + 6;
      broken[at] = broken[at]! ^ 1;
      expect(await pool.process(broken)).toMatchObject({ kind: 'refused' });
    }
  });

  test('headers with wrong sizes', async () => {
    expect(await pool.process(corpus.blackPng(1000, 1000, { rows: 10 }))).toEqual(refused('unreadable_file'));
    expect(await pool.process(corpus.blackPng(100, 1000, { rowWidth: 10 }))).toEqual(
      refused('unreadable_file'),
    );
    const jpeg = Buffer.from(valid['image/jpeg']!);
    jpeg.writeUInt16BE(4000, jpeg.indexOf(Buffer.from('ffc0', 'hex')) + 5);
    expect(await pool.process(jpeg)).toEqual(refused('unreadable_file'));
    const gif = Buffer.from(valid['image/gif']!);
    gif.writeUInt16LE(10, 6);
    gif.writeUInt16LE(10, 8);
    expect(await pool.process(gif)).toEqual(refused('unreadable_file'));
    // A coded frame of 26 megapixels, more than the limit, in a file whose header says 100 × 100.
    const avif = await solid(6_500, 4_000).avif({ effort: 0 }).toBuffer();
    const sides = avif.indexOf('ispe') + 8;
    avif.writeUInt32BE(100, sides);
    avif.writeUInt32BE(100, sides + 4);
    expect(await pool.process(avif)).toEqual(refused('unreadable_file'));
  });

  test('bombs, before a pixel is decoded', async () => {
    const inflated = { rows: 100, rowWidth: 100 };
    for (const [width, height] of [
      [30_000, 30_000],
      [65_535, 65_535],
      [25_165_825, 1],
    ] as const) {
      // inspect() does not decode. Only accepted files reach makeVariants(), which does.
      expect(await inspect(corpus.blackPng(width, height, inflated))).toEqual(refused('image_too_large'));
    }
    for (const side of [2 ** 31 - 1, 2 ** 32 - 1])
      expect(await pool.process(corpus.blackPng(side, side, inflated))).toMatchObject({ kind: 'refused' });
  });

  test.each(['zTXt', 'iTXt', 'iCCP'] as const)('a bomb in %s', async (type) => {
    const png = valid['image/png']!;
    expect(await pool.process(corpus.withPacked(png, type, [100_000]))).toMatchObject({ kind: 'image' });
    const large = corpus.withPacked(png, type, [12_000_000]);
    // Each chunk is small.
    const many = corpus.withPacked(png, type, Array<number>(12).fill(1_000_000));
    for (const bomb of [large, many]) {
      // The chunks cause the refusal, so the decoder never unpacks them.
      expect(isPngBomb(bomb)).toBe(true);
      expect(await pool.process(bomb)).toEqual(refused('unreadable_file'));
    }
  });

  test.each(types)('other data after the first bytes of %s', async (mime) => {
    const noise = fc.sample(fc.uint8Array({ minLength: 1_000, maxLength: 20_000 }), { numRuns: 10, seed: 7 });
    for (const bytes of noise) {
      const outcome = await pool.process(Buffer.concat([corpus.magic[mime]!, bytes]));
      expect([refused('unreadable_file'), refused('unsupported_media_type')]).toContainEqual(outcome);
    }
  });

  test('an HTML page that begins like a GIF', async () => {
    const parts = [Buffer.from('GIF89a/*'), Buffer.alloc(20, 1), Buffer.from('*/=1;'), corpus.html];
    expect(await pool.process(Buffer.concat(parts))).toMatchObject({ kind: 'refused' });
  });
});
