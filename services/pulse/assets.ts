import { readFileSync } from 'node:fs';
import { etagOf } from '@content-platform/chassis';

export interface Asset {
  type: string;
  bytes: Buffer;
  etag: string;
}

const types = {
  'pulse.css': 'text/css; charset=utf-8',
  'pulse.js': 'text/javascript; charset=utf-8',
  'pulse.svg': 'image/svg+xml',
};

/** Reads the files of the page, by name. */
export function readAssets(): ReadonlyMap<string, Asset> {
  return new Map(
    Object.entries(types).map(([name, type]) => {
      const bytes = readFileSync(new URL(`assets/${name}`, import.meta.url));
      return [name, { type, bytes, etag: etagOf(bytes) }];
    }),
  );
}
