import { inflateSync } from 'node:zlib';
import { fileTypeFromBuffer } from 'file-type';
import sharp from 'sharp';
import type { Outcome, Refusal } from './job.ts';

/** Returns the size in bytes of the colour table that `flags` describes; 0 if there is none. */
const colourTableBytes = (flags: number): number => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);

/** Returns the offset after the blocks at `at`. Each block begins with its length; the last one is empty. */
function afterBlocks(file: Buffer, at: number): number {
  let end = at;
  while (end < file.length && file[end] !== 0) end += file[end]! + 1;
  return end + 1;
}

/** Returns whether the first frame of a GIF is larger than its header says (GIF89a §18, §20). */
function exceedsGifHeader(file: Buffer): boolean {
  if (file.length < 13) return false;
  const [width, height] = [file.readUInt16LE(6), file.readUInt16LE(8)];
  let at = 13 + colourTableBytes(file[10]!);
  // Skips extensions, for example comments.
  while (file[at] === 0x21) at = afterBlocks(file, at + 2);
  if (file[at] !== 0x2c || at + 9 > file.length) return false;
  const side = (offset: number) => file.readUInt16LE(at + offset);
  return side(1) + side(5) > width || side(3) + side(7) > height;
}

/** Maximum unpacked size of all texts and colour profiles of an image together. */
const maxUnpackedBytes = 8 * 2 ** 20;

/** Returns the compressed part of a chunk, which follows a keyword and some flags (PNG specification §11.3). */
function packedPart(type: string, data: Buffer): Buffer | undefined {
  const keyword = data.indexOf(0);
  if (keyword < 0) return undefined;
  if (type === 'zTXt' || type === 'iCCP') return data.subarray(keyword + 2);
  if (type !== 'iTXt' || data[keyword + 1] !== 1) return undefined;
  const language = data.indexOf(0, keyword + 3);
  const translated = data.indexOf(0, language + 1);
  return language < 0 || translated < 0 ? undefined : data.subarray(translated + 1);
}

/** Returns whether a PNG's metadata unpacks to more than an image needs, which would block the decoder for seconds. */
export function isPngBomb(file: Buffer): boolean {
  let left = maxUnpackedBytes;
  for (let at = 8; at + 8 <= file.length;) {
    const length = file.readUInt32BE(at);
    const type = file.toString('latin1', at + 4, at + 8);
    const packed = packedPart(type, file.subarray(at + 8, at + 8 + length));
    if (packed) {
      try {
        left -= inflateSync(packed, { maxOutputLength: Math.max(1, left) }).length;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return true;
      }
    }
    at += length + 12;
  }
  return false;
}

/** 24 megapixels of 2^20 pixels: cameras sold as 24 megapixels have up to 24.5 million pixels (5712 × 4284). */
export const maxPixels = 24 * 2 ** 20;

/** Maximum side of a WebP. Decoders allocate memory by the line, so a long thin image would need gigabytes. */
const maxSide = 16_383;

/** Accepted image types with sharp's names. worker.ts enables their decoders; the contract and upload.ts list them. */
const formats: Record<string, string> = {
  'image/jpeg': 'jpeg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'image/avif': 'heif',
};

/** The detected type of a file; images are not decoded yet. */
type DetectedType = { kind: 'image'; mime: string } | Extract<Outcome, { kind: 'pdf' | 'refused' }>;

const refused = (refusal: Refusal): DetectedType => ({ kind: 'refused', refusal });

/** Readers search for the end of a PDF in its last 1,024 bytes (ISO 32000-1, annex H.3). */
const isWholePdf = (file: Buffer): boolean => file.subarray(-1_024).includes('%%EOF');

async function inspectImage(file: Buffer, mime: string): Promise<DetectedType> {
  if (mime === 'image/png' && isPngBomb(file)) return refused('unreadable_file');
  if (mime === 'image/gif' && exceedsGifHeader(file)) return refused('unreadable_file');
  // With its own limit sharp would report images that are too large as damaged.
  const header = sharp(file, { limitInputPixels: false }).metadata();
  const metadata = await header.catch(() => undefined);
  if (!metadata || metadata.format !== formats[mime]) return refused('unreadable_file');
  if ((metadata.pages ?? 1) > 1) return refused('animated_image');
  const { width, height, depth } = metadata;
  // 16 bits for each colour take twice the memory.
  const pixels = width * height * (depth === 'ushort' ? 2 : 1);
  if (pixels > maxPixels || Math.max(width, height) > maxSide) return refused('image_too_large');
  return { kind: 'image', mime };
}

/** Detects an AVIF with a sequence of frames (AV1 image file format §6.3), of which sharp would decode only the first. */
const isAvifSequence = (file: Buffer): boolean => file.toString('latin1', 4, 12) === 'ftypavis';

/** Detects the type of a file from its bytes, without decoding pixels. */
export async function inspect(file: Buffer): Promise<DetectedType> {
  const type = await fileTypeFromBuffer(file).catch(() => undefined);
  const mime: string | undefined = type?.mime;
  if (mime === 'image/apng') return refused('animated_image');
  if (mime === 'application/pdf') {
    return isWholePdf(file) ? { kind: 'pdf', mime } : refused('unreadable_file');
  }
  if (mime === undefined || !Object.hasOwn(formats, mime)) return refused('unsupported_media_type');
  if (mime === 'image/avif' && isAvifSequence(file)) return refused('animated_image');
  return inspectImage(file, mime);
}
