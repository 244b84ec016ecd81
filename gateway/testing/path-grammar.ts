import fc from 'fast-check';

/** Mutates a path; `a` and `b` select the position and the variant. */
type Change = (path: string, a: number, b: number) => string;

const words = (text: string) => text.trim().split(/\s+/);
const one = <T>(list: readonly T[], number: number): T => list[number % list.length]!;
const insert = (path: string, at: number, text: string) => path.slice(0, at) + text + path.slice(at);
const hexOf = (code: number, digits = 2) => code.toString(16).padStart(digits, '0');
const utf8 = (text: string) => [...Buffer.from(text)].map((byte) => `%${hexOf(byte)}`).join('');

/** Returns a position in `path` at which `pattern` matches. */
function placeOf(path: string, pattern: RegExp, number: number): number {
  const places = [...path.matchAll(pattern)].map(({ index }) => index);
  return places.length > 0 ? one(places, number) : 0;
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

/** Characters that look like an ASCII character, or that some software folds into one. */
const lookAlikes: Record<string, string> = {
  '/': '／∕⁄⧸',
  '.': '．․。',
  '\\': '＼∖',
  '%': '％﹪',
  a: 'аａⓐªᵃ',
  c: 'сｃⅽ',
  d: 'ｄⅾ',
  e: 'еｅℯ',
  i: 'іｉıİ',
  k: 'Kｋ',
  l: 'ｌⅼℓ',
  m: 'ｍⅿ',
  o: 'оｏº',
  p: 'рｐ',
  s: 'ѕｓſ',
  t: 'ｔ',
};

const slashes = words(String.raw`
  // /// //// %2f %2F %252f %25252f \ \\ %5c %5C %255c /\ \/ /./ /.// /x/../ /%2e/ /.;/ /..;/x/../ /%2e%2e/ ;/ ;x=y/ /;/
  /;x=y/ /..;/ %c0%af %c1%9c %e0%80%af %f0%80%80%af %ef%bc%8f %e2%88%95 %u2215 %u002f /%09/ /%20/ /%00/ %00/ /%0d%0a/
  /.%00./ %2f%2f /%2f %2f/ /%3b/ %3b/ %23/ %3f/ /%23/ /%3f/
`);
const up = words(String.raw`
  .. ... .... %2e%2e %2E%2e .%2e %2e. %252e%252e %25252e. ..%00 ..%0d ..; ..;x=y ..%3b ..%20 ..%09 .%00. .%0d. .+. %c0%ae%c0%ae
  %e0%80%ae. %c0%2e%c0%2e %uff0e%uff0e %u002e%u002e %ef%bc%8e%ef%bc%8e %e2%80%a4. 0x2e0x2e ..%c2%a0 ..%ef%bb%bf ..~ ..: ...; "..
`);
const steps = words(String.raw`/ // \ %2f %2F %5c %252f %255c %c0%af ;/ /./ %2f/ \/`);
const known = words(`
  /health /api/docs /api/docs/x /api/openapi.json /.well-known/jwks.json /.well-known /api/login /api/token /pulse
  /pulse/assets/x /api/identity/login /api/identity /api/x/login /api /api/me /api/content/webform/1 /x
`);
const tails = words(String.raw`
  / // /. /./ /.. /x/.. /%2e /%2e%2e/ %2f %00 %00.json %00.png %0a %0d%0a %09 %20 %23 %3f %3b ; ;x ;x=y ;.css ;/ . .. .json
  %2ejson ..;/ \ %5c # #x #/../x ? ?? ?x ?/../../x /? ?a=%2e%2e/ & ~ % %2 %zz %ff %80 %c0%80 * /; : @ $ ! ' ( ) , = + ,json
  /index.html /.git /%2e%2e%2fhealth ;/../health ?.css %3f.css %23.css #.css ::$DATA .%20 ~1 %%
`);
const starts = words(String.raw`
  // /// \ /\ \\ /. /./ /.. /..; /.; /; /;x /%00 /%09 /%20 /%2f /%5c * . .. x @ : /: http: http:/ http:// https:// HTTP:// file://
  ftp:// ws:// http://gateway.test https://gateway.test:443 http://127.0.0.1 http://127.0.0.1:8081 http://user@gateway.test
  http://user:pass@x HTTP://X http://[::1] http://x%00 http://gateway.test\ //gateway.test ///gateway.test //user@x \\x
  gateway.test gateway.test:80 127.0.0.1:8081 localhost [::1]:80 user@gateway.test /https://x /http:/x jar:http://x! view-source:
`);
const inserted = [
  ...words(`
    %00 %01 %08 %09 %0a %0b %0c %0d %0d%0a %1f %20 %7f %85 %a0 %ad %c2%85 %c2%a0 %c2%ad %cc%88 %e2%80%8b %e2%80%8c %e2%80%ae
    %e2%81%a0 %ef%bb%bf %ef%bf%bd %ef%bf%bf %ed%a0%80 %f4%90%80%80 %f3%a0%81%81 %ff %fe + %2b %2520 %2500 %250d%250a
  `),
  ...'\t\0\x01\x0b\x0c\x7f\x80\x85\xa0\xad\xff "<>^`{}|[]',
];

const changes: Change[] = [
  // Encodings: of one character, of a slash or a dot, of a segment, of everything.
  (path, a, b) => {
    const at = 1 + (a % Math.max(1, path.length - 1));
    return path.slice(0, at) + one(encodings, b)(path.charCodeAt(at) & 127) + path.slice(at + 1);
  },
  (path, a, b) => {
    const at = placeOf(path, /[/.]/g, a);
    return path.slice(0, at) + one(encodings, b)(path.charCodeAt(at) & 127) + path.slice(at + 1);
  },
  (path, a, b) => {
    const segments = path.split('/');
    const at = a % segments.length;
    const encode = one(encodings, b);
    return segments
      .with(
        at,
        segments[at]!.replace(/[ -~]/g, (char) => encode(char.charCodeAt(0))),
      )
      .join('/');
  },
  (path, a, b) => {
    const encode = one(encodings, b);
    return `${a % 2 ? '/' : ''}${path.replace(/[ -~]/g, (char) => encode(char.charCodeAt(0)))}`;
  },
  // Slashes, dot segments, and ways from a public path to another path.
  (path, a, b) => {
    const at = placeOf(path, /\//g, a);
    return path.slice(0, at) + one(slashes, b) + path.slice(at + 1);
  },
  (path, _, b) => path.replaceAll('/', one(slashes, b)),
  (path, a, b) => {
    const from = one(known, a);
    const depth = (b % 5) + from.split('/').length - 1;
    const step = one(up, b >> 3) + one(steps, b >> 9);
    return `${from}${one(steps, a >> 5)}${step.repeat(depth)}${path.replace(/^\//, '')}`;
  },
  (path, a, b) => insert(path, placeOf(path, /\//g, a), one(steps, b) + one(up, b >> 4)),
  (path, a, b) => `${path}/${(one(up, a) + one(steps, a >> 6)).repeat(1 + (b % 8))}${one(known, b >> 3)}`,
  // Matrix parameters, also within the path.
  (path, a, b) => {
    const parameter = words(
      ';x ;x=y ; ;; ;a=/ ;/ %3bx %3b ;jsessionid=1 ;.. ;../ ;%2e%2e;x ;x=.. ;x%2f.. ?x/ %3fx/ %23x/ #x/',
    );
    return insert(path, placeOf(path, /(?<=[^/])(?=\/|$)/g, a), one(parameter, b));
  },
  // Case and look-alikes.
  (path, a) => {
    const at = placeOf(path, /[a-z]/gi, a);
    const char = path[at] ?? '';
    return (
      path.slice(0, at) +
      (char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase()) +
      path.slice(at + 1)
    );
  },
  (path, a) =>
    a % 3 === 0
      ? path.toUpperCase()
      : a % 3 === 1
        ? path.toLowerCase()
        : path.replace(/\/./g, (s) => s.toUpperCase()),
  (path, a, b) => {
    const at = placeOf(path, /[/.\\%acdeiklmopst]/g, a);
    const alike = one([...(lookAlikes[path[at]!] ?? '／')], b);
    // Percent-encoded, or as bytes.
    return (
      path.slice(0, at) + (b & 64 ? Buffer.from(alike).toString('latin1') : utf8(alike)) + path.slice(at + 1)
    );
  },
  // An invisible character in the middle.
  (path, a, b) => insert(path, 1 + (a % Math.max(1, path.length)), one(inserted, b)),
  // Before and after the path.
  (path, a) => one(starts, a) + path,
  (path, a) => one(known, a) + path,
  (path, a) => path + one(tails, a),
  // Very long paths.
  (path, a, b) =>
    insert(
      path,
      placeOf(path, /\//g, a),
      one(['/.', '/..', '/x', '//', '%2f', '/%2e', 'a', ';x'], b).repeat(50 + (b % 2_000)),
    ),
  (path, a, b) => `${path}${one(['?', '#', ';', '/', '%3f', ''], a)}${'x'.repeat(b % 9_000)}`,
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
