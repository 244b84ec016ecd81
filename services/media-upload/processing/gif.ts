import { readFile } from 'node:fs/promises';

/** Bytes of a colour table whose size and presence `flags` tells. */
const colours = (flags: number): number => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);

/** Behind the blocks that begin at `at`, each with its length in front, the last one empty. */
function behindBlocks(file: Buffer, at: number): number {
  let end = at;
  while (end < file.length && file[end] !== 0) end += file[end]! + 1;
  return end + 1;
}

/**
 * Whether the first frame of a GIF goes beyond the sides that its header tells (GIF89a §18, §20). What is damaged is
 * left for the decoder to say.
 */
export async function gifLies(path: string): Promise<boolean> {
  const file = await readFile(path);
  if (file.length < 13) return false;
  const [width, height] = [file.readUInt16LE(6), file.readUInt16LE(8)];
  let at = 13 + colours(file[10]!);
  // Extensions: comments, control of animations.
  while (file[at] === 0x21) at = behindBlocks(file, at + 2);
  if (file[at] !== 0x2c || at + 9 > file.length) return false;
  const side = (offset: number) => file.readUInt16LE(at + offset);
  return side(1) + side(5) > width || side(3) + side(7) > height;
}
