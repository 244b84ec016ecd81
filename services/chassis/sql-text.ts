const comment = [
  String.raw`--[^\n]*`,
  String.raw`\/\*(?:(?!\/\*|\*\/)[^])*\*\/`,
  // One with others in it, or without an end: everything up to the last end, rather than too little.
  String.raw`\/\*(?:[^]*\*\/|[^]*)`,
].join('|');

/** Placeholders, names, and words, but for the letter that can stand before a string. */
const kept = [
  String.raw`\$\d+`,
  String.raw`"(?:[^"]|"")*"`,
  String.raw`(?!(?:[ebnx]|u&)')[\p{L}_][\p{L}\p{N}_$]*`,
].join('|');

/** Numbers and strings, and what was begun and has no end. Only an E'…' has escapes. */
const value = [
  String.raw`e'(?:[^'\\]|\\[^]|'')*(?:'|\\?$)`,
  String.raw`(?:[bnx]|u&)?'(?:[^']|'')*(?:'|$)`,
  String.raw`\$(?<tag>(?:[\p{L}_][\p{L}\p{N}_]*)?)\$[^]*?(?:\$\k<tag>\$|$)`,
  String.raw`\.?\d(?:(?<=\de)[+-]\d|[\p{L}\p{N}_.])*`,
  String.raw`"[^]*`,
].join('|');

const token = new RegExp(`(?<comment>${comment})|(?<kept>${kept})|${value}`, 'giu');

/**
 * A statement without the values that are written in it: each is a `?`, and comments are gone. Placeholders and names
 * stay. By PostgreSQL's rules (its manual, 4.1 Lexical Structure), with standard_conforming_strings on.
 */
export function withoutValues(statement: string): string {
  return statement.replace(token, (found, ...rest) => {
    const groups = rest.at(-1) as { comment?: string; kept?: string };
    return groups.kept ?? (groups.comment === undefined ? '?' : '');
  });
}
