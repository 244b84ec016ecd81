import { randomBytes } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import sharp from 'sharp';
import { accepted } from './accounts.ts';
import { stack } from './stack.ts';

export type Bytes = Buffer<ArrayBuffer>;

/** Creates an image with random content, so that it is new to the platform. */
export function newImage(width = 60, height = 40): Promise<Bytes> {
  const raw = { width, height, channels: 3 as const };
  return sharp(randomBytes(width * height * 3), { raw })
    .jpeg()
    .toBuffer() as Promise<Bytes>;
}

/** Creates an image of a phone's size that is new to the platform, from random noise. */
export async function largeImage(width: number, height: number): Promise<Bytes> {
  const [across, down] = [Math.ceil(width / 4), Math.ceil(height / 4)];
  const raw = { width: across, height: down, channels: 3 as const };
  return sharp(randomBytes(across * down * 3), { raw })
    .blur(3)
    .resize(width, height, { fit: 'fill' })
    .jpeg({ quality: 85 })
    .toBuffer() as Promise<Bytes>;
}

export const newPdf = (): Bytes =>
  Buffer.from(`%PDF-1.4\n% ${randomBytes(8).toString('hex')}\ntrailer<<>>\n%%EOF\n`);

export const fileOf = (bytes: Bytes, name = 'image.jpg'): { file: File } => ({
  file: new File([bytes], name),
});
export async function uploaded(token: string, bytes: Bytes, name?: string): Promise<contract.MediaFile> {
  return (await accepted(call(stack().gateway, contract.upload, { body: fileOf(bytes, name), token }))).body;
}

export async function download(url: string, token: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers: { Authorization: `Bearer ${token}`, ...headers } });
  const body = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, body };
}
