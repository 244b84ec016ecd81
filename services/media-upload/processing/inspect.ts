import { open } from 'node:fs/promises';
import { fileTypeFromFile } from 'file-type';
import sharp from 'sharp';
import { gifLies } from './gif.ts';
import { pngIsBomb } from './png.ts';
import type { Outcome, Refusal } from './job.ts';

/**
 * Pixels of the largest picture: 24 megapixels, as makers of cameras count them. Theirs have up to 24.5 million
 * (5712 × 4284), so a mega is 2^20 here.
 */
export const maxPixels = 24 * 2 ** 20;

/** The longest side that WebP knows. Decoders and scalers take memory by the line, so a long thin picture takes gigabytes. */
const maxSide = 16_383;

/** What sharp calls the pictures that are taken. */
const formats: Record<string, string> = {
  'image/jpeg': 'jpeg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'image/avif': 'heif',
};

/** A picture is still to be decoded. */
export type Kind = { kind: 'picture'; mime: string } | Extract<Outcome, { kind: 'pdf' | 'refused' }>;

const refused = (refusal: Refusal): Kind => ({ kind: 'refused', refusal });

/** The end of a PDF, which readers look for in its last 1,024 bytes (ISO 32000-1, annex H.3). */
async function isWholePdf(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(1_024),
      position: Math.max(0, size - 1_024),
    });
    return buffer.subarray(0, bytesRead).includes('%%EOF');
  } finally {
    await file.close();
  }
}

async function inspectPicture(path: string, mime: string): Promise<Kind> {
  if (mime === 'image/png' && (await pngIsBomb(path))) return refused('unreadable_file');
  if (mime === 'image/gif' && (await gifLies(path))) return refused('unreadable_file');
  // Its own limit would not tell a picture that is too large from one that is damaged.
  const header = sharp(path, { limitInputPixels: false }).metadata();
  const metadata = await header.catch(() => undefined);
  if (!metadata || metadata.format !== formats[mime]) return refused('unreadable_file');
  if ((metadata.pages ?? 1) > 1) return refused('animated_image');
  const { width, height, depth } = metadata;
  // 16 bits for a colour take twice the memory.
  const pixels = width * height * (depth === 'ushort' ? 2 : 1);
  if (pixels > maxPixels || Math.max(width, height) > maxSide) return refused('image_too_large');
  return { kind: 'picture', mime };
}

/** AVIF as a sequence of frames (AV1 image file format §6.3): sharp would show the first. */
async function isAvifSequence(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer } = await file.read({ buffer: Buffer.alloc(12), position: 0 });
    return buffer.toString('latin1', 4, 12) === 'ftypavis';
  } finally {
    await file.close();
  }
}

/** What a file is by its content. No pixel is decoded for that. */
export async function inspect(path: string): Promise<Kind> {
  const type = await fileTypeFromFile(path).catch(() => undefined);
  const mime: string | undefined = type?.mime;
  if (mime === 'image/apng') return refused('animated_image');
  if (mime === 'application/pdf') {
    return (await isWholePdf(path)) ? { kind: 'pdf', mime } : refused('unreadable_file');
  }
  if (mime === undefined || !Object.hasOwn(formats, mime)) return refused('unsupported_media_type');
  if (mime === 'image/avif' && (await isAvifSequence(path))) return refused('animated_image');
  return inspectPicture(path, mime);
}
