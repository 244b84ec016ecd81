// Generates test files: images of every type, and files that only look like images.
import { crc32, deflateSync } from 'node:zlib';
import sharp, { type Sharp } from 'sharp';

/** Makes an image without two equal parts, so that rotating or cropping it is visible. */
export function image(width: number, height: number, channels: 1 | 2 | 3 | 4 = 3): Sharp {
  const data = Buffer.alloc(width * height * channels);
  for (let y = 0, at = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      for (let c = 0; c < channels; c += 1, at += 1) {
        data[at] =
          ((x * 255) / width) * (c % 2) + ((y * 255) / height) * ((c + 1) % 2) + ((x * 7 + y * 13) % 16);
      }
    }
  }
  return sharp(data, { raw: { width, height, channels } });
}

/** Makes a JPEG that differs from those of other sizes. */
export const jpeg = (width = 60, height = 40): Promise<Buffer<ArrayBuffer>> =>
  image(width, height).jpeg().toBuffer() as Promise<Buffer<ArrayBuffer>>;

/** Makes an image of each accepted type, by its type. */
export async function validImages(): Promise<Record<string, Buffer>> {
  const source = image(300, 200);
  return {
    'image/jpeg': await source.clone().jpeg().toBuffer(),
    'image/png': await source.clone().png().toBuffer(),
    'image/webp': await source.clone().webp().toBuffer(),
    'image/gif': await source.clone().gif().toBuffer(),
    'image/avif': await source.clone().avif({ effort: 1 }).toBuffer(),
  };
}

export const pdf = Buffer.from(
  `%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj
trailer<</Root 1 0 R>>
%%EOF
`,
  'latin1',
);

const signature = Buffer.from('89504e470d0a1a0a', 'hex');

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}

/** Makes a grey PNG: its header says `width` × `height`, its data are `rows` black rows of `rowWidth` pixels. */
export function blackPng(width: number, height: number, { rows = height, rowWidth = width } = {}): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8;
  const data = deflateSync(Buffer.alloc((rowWidth + 1) * rows), { level: 9 });
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** Makes an animation of two frames: `image` with the chunks of one frame in front of its data. */
export function apng(image: Buffer): Buffer {
  const control = Buffer.alloc(8);
  control.writeUInt32BE(2, 0);
  const headerEnd = signature.length + 25;
  return Buffer.concat([image.subarray(0, headerEnd), chunk('acTL', control), image.subarray(headerEnd)]);
}

const beforePacked = {
  zTXt: Buffer.from('Comment\0\0', 'latin1'),
  iTXt: Buffer.from('Comment\0\x01\0\0\0', 'latin1'),
  iCCP: Buffer.from('profile\0\0', 'latin1'),
};

/** Adds texts or profiles to a PNG that unpack to these numbers of bytes. */
export function withPacked(image: Buffer, type: keyof typeof beforePacked, sizes: number[]): Buffer {
  const headerEnd = signature.length + 25;
  const chunks = sizes.map((size) =>
    chunk(type, Buffer.concat([beforePacked[type], deflateSync(Buffer.alloc(size, 'x'), { level: 9 })])),
  );
  return Buffer.concat([image.subarray(0, headerEnd), ...chunks, image.subarray(headerEnd)]);
}

/** Makes an animation as GIF or WebP. */
export async function animation(format: 'gif' | 'webp'): Promise<Buffer> {
  const frames = await Promise.all([1, 2, 3].map((shade) => solid(40, 30, shade * 60)));
  const options = { delay: [100, 100, 100], loop: 0 };
  const all = sharp(frames, { join: { animated: true } });
  return format === 'gif' ? all.gif(options).toBuffer() : all.webp(options).toBuffer();
}

async function solid(width: number, height: number, grey: number): Promise<Buffer> {
  const background = { r: grey, g: 255 - grey, b: grey };
  return sharp({ create: { width, height, channels: 3, background } })
    .png()
    .toBuffer();
}

/** The first bytes of each type, without the rest of the file. */
export const magic: Record<string, Buffer> = {
  'image/jpeg': Buffer.from('ffd8ffe000104a46494600010101', 'hex'),
  'image/png': Buffer.concat([signature, Buffer.from('0000000d49484452', 'hex')]),
  'image/webp': Buffer.from('RIFF\x10\x27\0\0WEBPVP8 ', 'latin1'),
  'image/gif': Buffer.from('GIF89a', 'latin1'),
  'image/avif': Buffer.from('\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf', 'latin1'),
};

export const html = Buffer.from('<html><script>alert(document.cookie)</script></html>');

/** Files of types that are not accepted. */
export const others: Record<string, Buffer> = {
  svg: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'),
  'svg with a declaration': Buffer.from('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'),
  html,
  text: Buffer.from('Hello.'),
  zip: Buffer.from(`504b0304${'00'.repeat(60)}`, 'hex'),
  gzip: Buffer.from('1f8b0800000000000003', 'hex'),
  elf: Buffer.from(`7f454c46020101${'00'.repeat(60)}`, 'hex'),
  exe: Buffer.from(`4d5a90000300${'00'.repeat(100)}`, 'hex'),
  tiff: Buffer.from('49492a0008000000000000000000', 'hex'),
  bmp: Buffer.from(`424d46000000000000003600000028000000${'00'.repeat(60)}`, 'hex'),
  heic: Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic', 'latin1'),
  'one byte': Buffer.from('x'),
};
