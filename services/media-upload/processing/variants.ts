import { join } from 'node:path';
import sharp, { type OutputInfo, type Sharp } from 'sharp';
import { rgbaToThumbHash } from 'thumbhash';
import type { ImageVariant } from '@content-platform/contract';
import { maxPixels } from './inspect.ts';
import type { Job, MadeVariant, Picture } from './job.ts';

/** Decoded pixels: sRGB, 8 bits, upright. */
interface Pixels {
  data: Buffer;
  info: OutputInfo;
}

/** The decoder gives up: the file is damaged. */
export class Unreadable extends Error {}

const from = ({ data, info: { width, height, channels } }: Pixels): Sharp =>
  sharp(data, { raw: { width, height, channels } });

interface Sides {
  width: number;
  height: number;
}

/** The sides of what fits into a square; what is smaller stays as it is. */
function within(side: number, { width, height }: Sides): Sides {
  const scale = Math.min(1, side / Math.max(width, height));
  const scaled = (length: number) => Math.max(1, Math.round(length * scale));
  return { width: scaled(width), height: scaled(height) };
}

/** `whole` is the upload's, so that what is rounded does not add up from one variant to the next. */
const fit = (picture: Sharp, side: number, whole: Sides): Sharp =>
  picture.resize({ ...within(side, whole), fit: 'fill' });

const pixels = (picture: Sharp): Promise<Pixels> => picture.raw().toBuffer({ resolveWithObject: true });

type FailOn = 'warning' | 'error';

/** What libjpeg says when pixels are missing that the header speaks of; it makes grey ones, and calls that a warning. */
const missingPixels = /premature end of data/i;

/**
 * The one time that the upload is decoded. What is cut off or has wrong checksums is an error; bytes behind the end are
 * never looked at. Phones write JPEGs that deserve a warning: those are decoded once more, without minding it.
 */
async function decode(path: string, mime: string, side: number, whole: Sides): Promise<Pixels> {
  const attempt = (failOn: FailOn) => {
    const upload = sharp(path, { failOn, limitInputPixels: maxPixels }).autoOrient();
    return pixels(fit(upload, side, whole).toColourspace('srgb'));
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

async function write(picture: Pixels, folder: string, name: ImageVariant): Promise<MadeVariant> {
  const path = join(folder, name);
  const { width, height, size } = await from(picture).webp().toFile(path);
  return { name, path, width, height, bytes: size };
}

async function placeholderOf(picture: Pixels): Promise<string> {
  const { data, info } = await pixels(fit(from(picture), 100, picture.info).ensureAlpha());
  return Buffer.from(rgbaToThumbHash(info.width, info.height, data)).toString('base64');
}

/** How a picture is seen: its sides upright. */
async function sidesOf(path: string): Promise<Sides> {
  const { autoOrient } = await sharp(path).metadata();
  return { width: autoOrient.width, height: autoOrient.height };
}

/**
 * Makes the variants of a picture, each of the next larger one's pixels, so that nothing of the upload but those gets
 * into them. Throws Unreadable.
 */
export async function makeVariants({ path, folder, sides }: Job, mime: string): Promise<Picture> {
  const whole = await sidesOf(path);
  const large = await decode(path, mime, sides.large, whole);
  const medium = await pixels(fit(from(large), sides.medium, whole));
  const thumb = await pixels(fit(from(medium), sides.thumb, whole));
  return {
    kind: 'picture',
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
