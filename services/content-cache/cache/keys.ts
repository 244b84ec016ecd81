/** The two forms in which a record is cached: fields of one hash, so that one CLEAR deletes both. */
export type View = 'full' | 'summary';

export const VIEWS: readonly View[] = ['full', 'summary'];

/**
 * The key of a record's hash. What other programs keep for the record begins with this key and a colon.
 *
 * @param model a known model: ASCII, no colon
 * @param id 1 to 2^53-1
 */
export function recordKey(model: string, id: number): string {
  return `${model}:${id}`;
}

/** Whether `key` is one that recordKey() makes: the boundary is exact, `webform:1x` is not. */
export function isRecordKey(key: string): boolean {
  return /^[^:]+:[1-9][0-9]{0,15}$/.test(key);
}

/** Takes away the meaning of glob characters, for SCAN's MATCH. */
export function escapeGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]^-]/g, String.raw`\$&`);
}
