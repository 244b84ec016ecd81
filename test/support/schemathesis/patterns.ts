/**
 * Returns all characters with a Unicode property, as this Node version defines it: the content of a character class,
 * escaped for JSON.
 */
function charactersOf(property: string): string {
  const has = new RegExp(`\\p{${property}}`, 'u');
  const written = (code: number): string => JSON.stringify(String.fromCodePoint(code)).slice(1, -1);
  const ranges: string[] = [];
  for (let code = 0, first = -1; code <= 0x110000; code += 1) {
    const isIn = code < 0x110000 && has.test(String.fromCodePoint(code));
    if (isIn && first < 0) first = code;
    if (isIn || first < 0) continue;
    ranges.push(first === code - 1 ? written(first) : `${written(first)}-${written(code - 1)}`);
    first = -1;
  }
  return ranges.join('');
}

/**
 * Expands `\p{…}` in a document's patterns to the characters themselves, so that schemathesis can generate matches.
 * JSON Schema uses ECMA-262, which supports `\p{…}`; Python does not. Nothing else changes.
 */
export function patternsForPython(document: string): string {
  return document.replace(/\\\\p\{(\w+)\}/g, (_, property: string) => charactersOf(property));
}
