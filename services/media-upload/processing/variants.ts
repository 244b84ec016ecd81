import { join } from 'node:path';
import sharp, { type Metadata, type OutputInfo, type Sharp } from 'sharp';
import { rgbaToThumbHash } from 'thumbhash';
import type { ImageVariant } from '@content-platform/contract';
import { maxPixels } from './inspect.ts';
import type { Job, CreatedVariant, ProcessedImage } from './job.ts';

/** Decoded pixels: sRGB, 8 bits, upright. */
interface Pixels {
  data: Buffer;
  info: OutputInfo;
}

/** Thrown if the file cannot be decoded. */
export class Unreadable extends Error {}

const toSharp = ({ data, info: { width, height, channels } }: Pixels): Sharp =>
  sharp(data, { raw: { width, height, channels } });

type Sides = Pick<OutputInfo, 'width' | 'height'>;

/** Returns the sides scaled to fit into a square; smaller images keep theirs. */
function within(side: number, { width, height }: Sides): Sides {
  const scale = Math.min(1, side / Math.max(width, height));
  const scaled = (length: number) => Math.max(1, Math.round(length * scale));
  return { width: scaled(width), height: scaled(height) };
}

/** Scales from `whole`, the sides of the upload, so that rounding errors do not add up between variants. */
const fit = (image: Sharp, side: number, whole: Sides): Sharp =>
  image.resize({ ...within(side, whole), fit: 'fill' });

const pixels = (image: Sharp): Promise<Pixels> => image.raw().toBuffer({ resolveWithObject: true });

/** The warning of libjpeg about missing pixels, which it fills with grey. */
const missingPixels = /premature end of data/i;

/**
 * Decodes the upload. Missing bytes and wrong checksums are errors; bytes after the end of the image are ignored.
 * Phones write JPEGs that cause warnings, so a JPEG with a warning is decoded again with warnings allowed.
 */
async function decode(file: Buffer, mime: string, side: number, header: Metadata): Promise<Pixels> {
  const attempt = (failOn: 'warning' | 'error') => {
    const upload = sharp(file, { failOn, limitInputPixels: maxPixels }).autoOrient();
    // Otherwise sharp converts 16 bits with a profile to Display P3, and reads the result as sRGB.
    if (header.space === 'rgb16') upload.pipelineColourspace('srgb');
    return pixels(fit(upload, side, header.autoOrient).toColourspace('srgb'));
  };
  try {
    if (mime !== 'image/jpeg') return await attempt('error');
    return await attempt('warning').catch((error: Error) => {
      if (missingPixels.test(error.message)) throw error;
      return attempt('error');
    });
  } catch (error) {
    throw new Unreadable((error as Error).message);
  }
}

async function write(image: Pixels, folder: string, name: ImageVariant): Promise<CreatedVariant> {
  const { width, height, size } = await toSharp(image).webp().toFile(join(folder, name));
  return { name, width, height, bytes: size };
}

/** ThumbHash accepts up to 100 pixels per side. */
async function placeholderOf(image: Pixels): Promise<string> {
  const { data, info } = await pixels(fit(toSharp(image), 100, image.info).ensureAlpha());
  return Buffer.from(rgbaToThumbHash(info.width, info.height, data)).toString('base64');
}

/** Makes each variant from the pixels of the next larger one, so none has metadata of the upload. Throws Unreadable. */
export async function makeVariants(
  file: Buffer,
  { folder, sides }: Job,
  mime: string,
): Promise<ProcessedImage> {
  const header = await sharp(file).metadata();
  const { autoOrient: whole } = header; // the sides of the upright image
  const large = await decode(file, mime, sides.large, header);
  const medium = await pixels(fit(toSharp(large), sides.medium, whole));
  const thumb = await pixels(fit(toSharp(medium), sides.thumb, whole));
  return {
    kind: 'image',
    mime,
    ...whole,
    placeholder: await placeholderOf(thumb),
    variants: [
      await write(thumb, folder, 'thumb'),
      await write(medium, folder, 'medium'),
      await write(large, folder, 'large'),
    ],
  };
}
