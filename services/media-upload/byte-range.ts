import type { ByteRange } from './stores/store.ts';

/**
 * The part of a file of `size` bytes that a Range header asks for (RFC 9110 §14.2). Undefined: the whole file, as
 * without a header, when it is of another unit, malformed or asks for several parts. 'unsatisfiable': it begins behind
 * the file's end.
 */
export function parseRange(
  header: string | undefined,
  size: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, first, last] = /^bytes=\s*(\d*)-(\d*)$/i.exec(header?.trim() ?? '') ?? [];
  if (first === undefined || (first === '' && last === '')) return undefined;
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return undefined;
  if (start >= size) return 'unsatisfiable';
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) };
}
