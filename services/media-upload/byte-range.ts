import type { ByteRange } from './stores/store.ts';

/**
 * Parses a Range header for a file of `size` bytes (RFC 9110 §14.2). Returns undefined for the whole file: without a
 * header, and if the header is malformed, has another unit or lists several ranges. Returns 'unsatisfiable' if the
 * range begins after the end of the file.
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
