/** The characters that have a property of Unicode, as this Node knows them: the inside of a class, in JSON. */
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
 * ECMA-262, whose patterns JSON Schema has, knows `\p{…}`, Python does not: what stands in a class is written as its
 * characters, so that schemathesis can make some. Nothing else of the document changes.
 */
export function patternsForPython(document: string): string {
  return document.replace(/\\\\p\{(\w+)\}/g, (_, property: string) => charactersOf(property));
}
