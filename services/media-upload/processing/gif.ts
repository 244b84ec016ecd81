/** Returns the size in bytes of the colour table that `flags` describes; 0 if there is none. */
const colourTableBytes = (flags: number): number => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);

/** Returns the offset after the blocks at `at`. Each block begins with its length; the last one is empty. */
function afterBlocks(file: Buffer, at: number): number {
  let end = at;
  while (end < file.length && file[end] !== 0) end += file[end]! + 1;
  return end + 1;
}

/**
 * Returns whether the first frame of a GIF is larger than its header says (GIF89a §18, §20). The decoder rejects
 * damaged files.
 */
export function exceedsGifHeader(file: Buffer): boolean {
  if (file.length < 13) return false;
  const [width, height] = [file.readUInt16LE(6), file.readUInt16LE(8)];
  let at = 13 + colourTableBytes(file[10]!);
  // Skips extensions, for example comments.
  while (file[at] === 0x21) at = afterBlocks(file, at + 2);
  if (file[at] !== 0x2c || at + 9 > file.length) return false;
  const side = (offset: number) => file.readUInt16LE(at + offset);
  return side(1) + side(5) > width || side(3) + side(7) > height;
}
