import { readFileSync } from 'node:fs';
import { etagOf, HttpError, matchesIfNoneMatch, type Handler } from '@content-platform/chassis';
import { Readable } from 'node:stream';
import type { pulseAsset as contract } from '@content-platform/contract';

const types = {
  'pulse.css': 'text/css; charset=utf-8',
  'pulse.js': 'text/javascript; charset=utf-8',
  'pulse.svg': 'image/svg+xml',
};

/** Reads the assets now, and serves them from memory. */
export function pulseAsset(): Handler<typeof contract> {
  const assets = new Map(
    Object.entries(types).map(([name, type]) => {
      const bytes = readFileSync(new URL(`../assets/${name}`, import.meta.url));
      return [name, { type, bytes, etag: etagOf(bytes) }] as const;
    }),
  );
  return ({ params: { file }, header }) => {
    const asset = assets.get(file);
    if (!asset) throw new HttpError('not_found', 'The file was not found.');
    const headers = { 'Cache-Control': 'public, no-cache', ETag: asset.etag };
    if (matchesIfNoneMatch(header('if-none-match'), asset.etag)) return { status: 304, headers };
    const more = { 'Content-Type': asset.type, 'Content-Length': String(asset.bytes.length) };
    return { status: 200, body: Readable.from([asset.bytes]), headers: { ...headers, ...more } };
  };
}
