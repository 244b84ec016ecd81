import { Readable } from 'node:stream';
import { HttpError, matchesIfNoneMatch, type Handler } from '@content-platform/chassis';
import type { pulseAsset as contract } from '@content-platform/contract';
import type { Asset } from '../assets.ts';

export function pulseAsset({ assets }: { assets: ReadonlyMap<string, Asset> }): Handler<typeof contract> {
  return ({ params: { file }, header }) => {
    const asset = assets.get(file);
    if (!asset) throw new HttpError('not_found', 'The file was not found.');
    const headers = { 'Cache-Control': 'public, no-cache', ETag: asset.etag };
    if (matchesIfNoneMatch(header('if-none-match'), asset.etag)) return { status: 304, headers };
    const more = { 'Content-Type': asset.type, 'Content-Length': String(asset.bytes.length) };
    return { status: 200, body: Readable.from([asset.bytes]), headers: { ...headers, ...more } };
  };
}
