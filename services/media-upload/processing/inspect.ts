import { fileTypeFromBuffer } from 'file-type';
import sharp from 'sharp';
import { exceedsGifHeader } from './gif.ts';
import { isPngBomb } from './png.ts';
import type { Outcome, Refusal } from './job.ts';

/**
 * 24 megapixels. A mega is 2^20 here, because cameras sold as 24 megapixels have up to 24.5 million pixels (5712 ×
 * 4284).
 */
export const maxPixels = 24 * 2 ** 20;

/** Maximum side of a WebP. Decoders allocate memory by the line, so a long thin image would need gigabytes. */
const maxSide = 16_383;

/** The accepted image types, with sharp's names for them. */
const formats: Record<string, string> = {
  'image/jpeg': 'jpeg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'image/avif': 'heif',
};

/** The detected type of a file; images are not decoded yet. */
export type Kind = { kind: 'image'; mime: string } | Extract<Outcome, { kind: 'pdf' | 'refused' }>;

const refused = (refusal: Refusal): Kind => ({ kind: 'refused', refusal });

/** Readers search for the end of a PDF in its last 1,024 bytes (ISO 32000-1, annex H.3). */
const isWholePdf = (file: Buffer): boolean => file.subarray(-1_024).includes('%%EOF');

async function inspectPicture(file: Buffer, mime: string): Promise<Kind> {
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

/**
 * Detects an AVIF with a sequence of frames (AV1 image file format §6.3), of which sharp would decode only the first.
 */
const isAvifSequence = (file: Buffer): boolean => file.toString('latin1', 4, 12) === 'ftypavis';

/** Detects the type of a file from its bytes, without decoding pixels. */
export async function inspect(file: Buffer): Promise<Kind> {
  const type = await fileTypeFromBuffer(file).catch(() => undefined);
  const mime: string | undefined = type?.mime;
  if (mime === 'image/apng') return refused('animated_image');
  if (mime === 'application/pdf') {
    return isWholePdf(file) ? { kind: 'pdf', mime } : refused('unreadable_file');
  }
  if (mime === undefined || !Object.hasOwn(formats, mime)) return refused('unsupported_media_type');
  if (mime === 'image/avif' && isAvifSequence(file)) return refused('animated_image');
  return inspectPicture(file, mime);
}
