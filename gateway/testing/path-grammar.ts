import fc from 'fast-check';
import lists from './path-grammar.json' with { type: 'json' };

/** Mutates a path; `a` and `b` select the position and the variant. */
type Change = (path: string, a: number, b: number) => string;

const pick = <T>(list: readonly T[], number: number): T => list[number % list.length]!;
const insert = (path: string, at: number, text: string) => path.slice(0, at) + text + path.slice(at);
const replaceAt = (path: string, at: number, text: string) => path.slice(0, at) + text + path.slice(at + 1);
const hexOf = (code: number, digits = 2) => code.toString(16).padStart(digits, '0');
const utf8 = (text: string) => [...Buffer.from(text)].map((byte) => `%${hexOf(byte)}`).join('');

/** Returns a position in `path` at which `pattern` matches. */
function placeOf(path: string, pattern: RegExp, number: number): number {
  const places = [...path.matchAll(pattern)].map(({ index }) => index);
  return places.length > 0 ? pick(places, number) : 0;
}

/** Returns an ASCII character in many encodings. Overlong UTF-8 uses more bytes than allowed. */
const encodings: ((code: number) => string)[] = [
  (code) => `%${hexOf(code)}`,
  (code) => `%${hexOf(code).toUpperCase()}`,
  (code) => `%25${hexOf(code)}`,
  (code) => `%2525${hexOf(code)}`,
  (code) => `%25%32%35${hexOf(code)}`,
  (code) => `%%${hexOf(code).slice(0, 1)}${hexOf(code).slice(1)}`,
  (code) => `%${[...hexOf(code)].map((digit) => `%${hexOf(digit.charCodeAt(0))}`).join('')}`,
  (code) => `%u${hexOf(code, 4)}`,
  (code) => `%U${hexOf(code, 4)}`,
  (code) => `%00${hexOf(code)}`,
  (code) => `%${hexOf(0xc0 | (code >> 6))}%${hexOf(0x80 | (code & 63))}`,
  (code) => `%${hexOf(0xc0 | (code >> 6))}%${hexOf(code & 63)}`,
  (code) => `%e0%${hexOf(0x80 | (code >> 6))}%${hexOf(0x80 | (code & 63))}`,
  (code) => `%f0%80%${hexOf(0x80 | (code >> 6))}%${hexOf(0x80 | (code & 63))}`,
  (code) => `%f8%80%80%${hexOf(0x80 | (code >> 6))}%${hexOf(0x80 | (code & 63))}`,
  (code) => `%25${hexOf(0xc0 | (code >> 6))}%25${hexOf(0x80 | (code & 63))}`,
  (code) => `%${hexOf(code | 0x80)}`,
  (code) => `&#x${hexOf(code)};`,
  (code) => `\\x${hexOf(code)}`,
  (code) => `\\u${hexOf(code, 4)}`,
  (code) => `+${Buffer.from([0, code]).toString('base64').replace(/=+$/, '')}-`,
  (code) => `=${hexOf(code).toUpperCase()}`,
];

const encodeAt = (path: string, at: number, number: number) =>
  replaceAt(path, at, pick(encodings, number)(path.charCodeAt(at) & 127));
const encodeAll = (path: string, number: number) =>
  path.replace(/[ -~]/g, (char) => pick(encodings, number)(char.charCodeAt(0)));

const { inserted, known, matrixParameters, slashes, starts, steps, tails, up } = lists;
/** Characters that look like an ASCII character, or that some software folds into one. */
const lookAlikes: Record<string, string> = lists.lookAlikes;

const changes: Change[] = [
  // Encodings: of one character, of a slash or a dot, of a segment, of everything.
  (path, a, b) => encodeAt(path, 1 + (a % Math.max(1, path.length - 1)), b),
  (path, a, b) => encodeAt(path, placeOf(path, /[/.]/g, a), b),
  (path, a, b) => {
    const segments = path.split('/');
    const at = a % segments.length;
    return segments.with(at, encodeAll(segments[at]!, b)).join('/');
  },
  (path, a, b) => `${a % 2 ? '/' : ''}${encodeAll(path, b)}`,
  // Slashes, dot segments, and ways from a public path to another path.
  (path, a, b) => replaceAt(path, placeOf(path, /\//g, a), pick(slashes, b)),
  (path, _, b) => path.replaceAll('/', pick(slashes, b)),
  (path, a, b) => {
    const from = pick(known, a);
    const depth = (b % 5) + from.split('/').length - 1;
    const step = pick(up, b >> 3) + pick(steps, b >> 9);
    return `${from}${pick(steps, a >> 5)}${step.repeat(depth)}${path.replace(/^\//, '')}`;
  },
  (path, a, b) => insert(path, placeOf(path, /\//g, a), pick(steps, b) + pick(up, b >> 4)),
  (path, a, b) => `${path}/${(pick(up, a) + pick(steps, a >> 6)).repeat(1 + (b % 8))}${pick(known, b >> 3)}`,
  // Matrix parameters, also within the path.
  (path, a, b) => insert(path, placeOf(path, /(?<=[^/])(?=\/|$)/g, a), pick(matrixParameters, b)),
  // Case and look-alikes.
  (path, a) => {
    const at = placeOf(path, /[a-z]/gi, a);
    const char = path[at] ?? '';
    return replaceAt(path, at, char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase());
  },
  (path, a) =>
    a % 3 === 0
      ? path.toUpperCase()
      : a % 3 === 1
        ? path.toLowerCase()
        : path.replace(/\/./g, (s) => s.toUpperCase()),
  (path, a, b) => {
    const at = placeOf(path, /[/.\\%acdeiklmopst]/g, a);
    const alike = pick([...(lookAlikes[path[at]!] ?? '／')], b);
    // Percent-encoded, or as bytes.
    return replaceAt(path, at, b & 64 ? Buffer.from(alike).toString('latin1') : utf8(alike));
  },
  // An invisible character in the middle.
  (path, a, b) => insert(path, 1 + (a % Math.max(1, path.length)), pick(inserted, b)),
  // Before and after the path.
  (path, a) => pick(starts, a) + path,
  (path, a) => pick(known, a) + path,
  (path, a) => path + pick(tails, a),
  // Very long paths.
  (path, a, b) =>
    insert(
      path,
      placeOf(path, /\//g, a),
      pick(['/.', '/..', '/x', '//', '%2f', '/%2e', 'a', ';x'], b).repeat(50 + (b % 2_000)),
    ),
  (path, a, b) => `${path}${pick(['?', '#', ';', '/', '%3f', ''], a)}${'x'.repeat(b % 9_000)}`,
];

const choice = fc.noBias(fc.nat(1 << 20));
const step = fc.tuple(fc.noBias(fc.nat(changes.length - 1)), choice, choice);

export interface Variant {
  method: string;
  target: string;
}

/**
 * Returns `count` different targets that some parser might read as one of `paths`: combinations of the known families of
 * traversal, encoding and disguise. The same seed gives the same targets. They contain no CR and LF, which would split the
 * request line.
 */
export function pathVariants(paths: readonly Variant[], count: number, seed: number): Variant[] {
  const found = new Map<string, Variant>();
  const recipe = fc.tuple(
    fc.noBias(fc.nat(paths.length - 1)),
    fc.array(step, { minLength: 1, maxLength: 4 }),
  );
  for (let round = 0; found.size < count; round += 1) {
    for (const [index, steps] of fc.sample(recipe, { numRuns: count, seed: seed + round })) {
      const { method, target: path } = paths[index]!;
      const target = steps.reduce((changed, [change, a, b]) => changes[change]!(changed, a, b), path);
      // Spaces around the target belong to the request line, where Node's parser accepts several (RFC 9112 §3).
      const fits =
        target !== '' && target.trim() === target && target.length < 15_000 && !/[\r\n]/.test(target);
      if (fits && found.size < count) found.set(`${method} ${target}`, { method, target });
    }
  }
  return [...found.values()];
}
