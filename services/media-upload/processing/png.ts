import { inflateSync } from 'node:zlib';

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

/**
 * Returns whether a PNG's metadata unpacks to more than an image needs, which would block the decoder for seconds. The
 * decoder rejects damaged files.
 */
export function isPngBomb(file: Buffer): boolean {
  let left = maxUnpackedBytes;
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
