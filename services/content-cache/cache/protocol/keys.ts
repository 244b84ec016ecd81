import type { View } from '../connection.ts';

export const views: readonly View[] = ['full', 'summary'];

/**
 * The key of a record's hash. Other programs' keys for the record start with this key and a colon.
 *
 * @param model a known model: ASCII, no colon
 * @param id 1 to 2^53-1
 */
export function recordKey(model: string, id: number): string {
  return `${model}:${id}`;
}

/** Whether recordKey() makes `key`: `webform:1x` is another program's. */
export function isRecordKey(key: string): boolean {
  return /^[^:]+:[1-9][0-9]{0,15}$/.test(key);
}

/** Escapes glob characters for SCAN's MATCH. */
export function escapeGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]^-]/g, String.raw`\$&`);
}
