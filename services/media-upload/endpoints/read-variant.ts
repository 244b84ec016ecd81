import { etagOf, HttpError, matchesIfNoneMatch, type Handler } from '@content-platform/chassis';
import type { readVariant as contract } from '@content-platform/contract';
import { disposition, webpName } from '../file-name.ts';
import type { File } from '../file-store.ts';
import { keyOf, fileNotFound } from '../media-file.ts';
import type { MediaDeps } from './media.ts';

/**
 * Parses a Range header for a file of `size` bytes (RFC 9110 §14.2). Returns undefined for the whole file: without a
 * header, and if the header is malformed, has another unit or lists several ranges. Returns 'unsatisfiable' if the
 * range begins after the end of the file.
 */
export function parseRange(header: string | undefined, size: number) {
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

/** Returns the headers of every reply: the whole file, a byte range, or 304. */
function headersOf(etag: string): Record<string, string> {
  return {
    ETag: etag,
    'Cache-Control': 'private, max-age=31536000, immutable',
    Vary: 'Authorization', // or a browser would give the file to its next user
    'Accept-Ranges': 'bytes',
    'X-Content-Type-Options': 'nosniff',
    // Even if a browser misdetects the type, the content cannot run scripts or load anything.
    'Content-Security-Policy': "default-src 'none'; sandbox",
  };
}

/** Browsers show only images that we have encoded; PDFs are downloaded. */
function contentHeaders({ mime, name }: File): Record<string, string> {
  const isPdf = mime === 'application/pdf';
  return {
    'Content-Type': isPdf ? mime : 'image/webp',
    'Content-Disposition': isPdf ? disposition('attachment', name) : disposition('inline', webpName(name)),
  };
}

export function readVariant({ files, store, logger }: MediaDeps): Handler<typeof contract> {
  return async ({ params, caller, header, signal }) => {
    const file = await files.find(caller.id, params.id);
    const variant = file?.variants.find(({ name }) => name === params.variant);
    if (!file || !variant) throw fileNotFound();
    const key = keyOf(file.object, variant.name);
    const etag = etagOf(key);
    const headers = headersOf(etag);
    if (matchesIfNoneMatch(header('if-none-match'), etag)) return { status: 304, headers };

    const { bytes } = variant;
    const ifRange = header('if-range');
    const range = ifRange === undefined || ifRange === etag ? parseRange(header('range'), bytes) : undefined;
    if (range === 'unsatisfiable') {
      throw new HttpError('range_not_satisfiable', `The file has ${bytes} bytes.`, {
        headers: { 'Content-Range': `bytes */${bytes}` },
      });
    }
    // Never more than Content-Length: the surplus of a longer file would be read as the reply of the next request.
    const body = await store.get(key, range ?? { start: 0, end: bytes - 1 }, signal());
    if (!body) {
      logger.error({ key, id: file.id }, 'a stored file is missing');
      throw fileNotFound();
    }
    const all = { ...headers, ...contentHeaders(file) };
    if (!range) return { status: 200, body, headers: { ...all, 'Content-Length': String(bytes) } };
    const length = String(range.end - range.start + 1);
    const part = { 'Content-Length': length, 'Content-Range': `bytes ${range.start}-${range.end}/${bytes}` };
    return { status: 206, body, headers: { ...all, ...part } };
  };
}
