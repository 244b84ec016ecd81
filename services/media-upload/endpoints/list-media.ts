import type { Handler } from '@content-platform/chassis';
import type { listMedia as contract } from '@content-platform/contract';
import type { FileStore } from '../file-store.ts';
import { mediaFile } from '../media-file.ts';

export function listMedia(deps: { files: FileStore; publicUrl: string }): Handler<typeof contract> {
  return async ({ query: { limit, cursor }, caller }) => {
    const { files, next } = await deps.files.list(caller.id, cursor, limit);
    const items = files.map((file) => mediaFile(deps.publicUrl, file));
    return { status: 200, body: { items, next_cursor: next === null ? null : String(next) } };
  };
}
