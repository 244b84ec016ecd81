/** Returns the characters up to U+FFFF with a Unicode property: the content of a character class, as escapes. */
function charactersOf(property: string): string {
  const has = new RegExp(`\\p{${property}}`, 'u');
  const written = (code: number): string => `\\\\u${code.toString(16).padStart(4, '0')}`;
  const ranges: string[] = [];
  for (let code = 0, first = -1; code <= 0x10000; code += 1) {
    const isIn = code < 0x10000 && has.test(String.fromCharCode(code));
    if (isIn && first < 0) first = code;
    if (isIn || first < 0) continue;
    ranges.push(first === code - 1 ? written(first) : `${written(first)}-${written(code - 1)}`);
    first = -1;
  }
  return ranges.join('');
}

/**
 * Replaces `\p{…}` in the patterns of a JSON text by the characters. JSON Schema allows `\p{…}`, but Python and validators
 * that compile patterns without the flag `u` do not.
 */
export function expandProperties(json: string): string {
  return json.replace(/\\\\p\{(\w+)\}/g, (_, property: string) => charactersOf(property));
}
