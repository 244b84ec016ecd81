// A picture of 12 megapixels, one upload at a time, against the bare calls of sharp that make the same variants, in turns
// on the same machine: the upload may take 1.15 times as long. Exits with 1 when it takes longer.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { imageVariants } from '@content-platform/contract';
import sharp, { type OutputInfo, type Sharp } from 'sharp';
import { tokenOf } from '../support/accounts.ts';
import { largePicture, uploaded, type Bytes } from '../support/media.ts';
import { stack } from '../support/stack.ts';
import { median } from './percentiles.ts';

const limit = 1.15;
const rounds = 15;
const warmUps = 2;

interface Pixels {
  data: Buffer;
  info: OutputInfo;
}

sharp.cache(false);
sharp.concurrency(1);

function smaller(picture: Sharp, side: number): Promise<Pixels> {
  const fitted = picture.resize(side, side, { fit: 'inside', withoutEnlargement: true });
  return fitted.raw().toBuffer({ resolveWithObject: true });
}

const from = ({ data, info: { width, height, channels } }: Pixels) =>
  sharp(data, { raw: { width, height, channels } });

/** From one file to three, decoded once. */
async function bare(picture: Bytes, folder: string): Promise<void> {
  const path = join(folder, 'upload');
  await writeFile(path, picture);
  const large = await smaller(sharp(path).autoOrient().toColourspace('srgb'), imageVariants.large);
  const medium = await smaller(from(large), imageVariants.medium);
  const thumb = await smaller(from(medium), imageVariants.thumb);
  for (const [name, pixels] of Object.entries({ large, medium, thumb })) {
    await from(pixels).webp().toFile(join(folder, name));
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

const token = await tokenOf(stack().gateway, 'user');
const folder = await mkdtemp(join(tmpdir(), 'bench-'));
const picture = await largePicture(4032, 3024);
// Bytes behind the end change nothing but the checksum: each upload is a new one.
const another = () => Buffer.concat([picture, randomBytes(16)]);
const times = { upload: [] as number[], bare: [] as number[] };
try {
  for (let round = -warmUps; round < rounds; round += 1) {
    const bareMs = await timed(() => bare(another(), folder));
    const uploadMs = await timed(() => uploaded(token, another()));
    if (round < 0) continue;
    times.bare.push(bareMs);
    times.upload.push(uploadMs);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

const [uploadMs, bareMs] = [median(times.upload), median(times.bare)];
const ratio = uploadMs / bareMs;
const size = (picture.length / 1e6).toFixed(1);
console.log(
  `upload: 12 MP JPEG (${size} MB) to three variants, median of ${rounds}: ${uploadMs.toFixed(0)} ms, bare calls ${bareMs.toFixed(0)} ms, ratio ${ratio.toFixed(2)} (at most ${limit})`,
);
process.exitCode = ratio > limit ? 1 : 0;
