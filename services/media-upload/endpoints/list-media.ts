import { page, type Handler } from '@content-platform/chassis';
import type { listMedia as contract } from '@content-platform/contract';
import type { FileStore } from '../file-store.ts';
import { mediaFile } from '../media-file.ts';

export function listMedia(deps: { files: FileStore; publicUrl: string }): Handler<typeof contract> {
  return async ({ query: { limit, cursor }, caller }) => {
    const read = (rows: number) => deps.files.list(caller.id, cursor, rows);
    return { status: 200, body: await page(limit, read, (file) => mediaFile(deps.publicUrl, file)) };
  };
}
