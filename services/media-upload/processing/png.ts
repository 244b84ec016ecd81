import { readFile } from 'node:fs/promises';
import { inflateSync } from 'node:zlib';

/** What texts and colour profiles of a picture may be together when they are unpacked, in bytes. */
const maxUnpacked = 8 * 2 ** 20;

/** Where the deflated part of a chunk begins, behind a keyword and what follows it (PNG specification §11.3). */
function packedPart(type: string, data: Buffer): Buffer | undefined {
  const keyword = data.indexOf(0);
  if (keyword < 0) return undefined;
  if (type === 'zTXt' || type === 'iCCP') return data.subarray(keyword + 2);
  if (type !== 'iTXt' || data[keyword + 1] !== 1) return undefined;
  const language = data.indexOf(0, keyword + 3);
  const translated = data.indexOf(0, language + 1);
  return language < 0 || translated < 0 ? undefined : data.subarray(translated + 1);
}

/**
 * Whether what stands beside the pixels of a PNG unpacks to more than a picture needs: the decoder unpacks all of it,
 * for seconds. What is damaged is left for the decoder to say.
 */
export async function pngIsBomb(path: string): Promise<boolean> {
  const file = await readFile(path);
  let left = maxUnpacked;
  for (let at = 8; at + 8 <= file.length;) {
    const length = file.readUInt32BE(at);
    const packed = packedPart(
      file.toString('latin1', at + 4, at + 8),
      file.subarray(at + 8, at + 8 + length),
    );
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
