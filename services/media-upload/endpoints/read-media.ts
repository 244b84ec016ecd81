import type { Handler } from '@content-platform/chassis';
import type { readMedia as contract } from '@content-platform/contract';
import type { FileStore } from '../file-store.ts';
import { mediaFile, fileNotFound } from '../media-file.ts';

export function readMedia(deps: { files: FileStore; publicUrl: string }): Handler<typeof contract> {
  return async ({ params: { id }, caller }) => {
    const file = await deps.files.find(caller.id, id);
    if (!file) throw fileNotFound();
    return { status: 200, body: mediaFile(deps.publicUrl, file) };
  };
}
