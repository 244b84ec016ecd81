import type { z } from 'zod';
import { invalidFields } from '@content-platform/chassis';

/** Returns the cursor as an opaque text for `next_cursor`. */
export const encodeCursor = (cursor: object): string =>
  Buffer.from(JSON.stringify(cursor)).toString('base64url');

/** Returns the cursor that a client sent as the query parameter `name`. @throws HttpError 422 */
export function decodeCursor<T>(schema: z.ZodType<T>, text: string, name: string): T {
  try {
    return schema.parse(JSON.parse(Buffer.from(text, 'base64url').toString()));
  } catch {
    throw invalidCursor(name);
  }
}

/** Returns the 422 for a cursor that belongs to another request. */
export const invalidCursor = (name: string) =>
  invalidFields([
    { path: `query.${name}`, message: 'Must be the value of `next_cursor` in a reply to this request.' },
  ]);
