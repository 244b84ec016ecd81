const words = (text: string) => text.trim().split(/\s+/);

/** What may stand for a slash. */
const slashes = words(String.raw`
  // /// %2f %2F %252f %25252f \ %5c %255c /./ /.// /x/../ /%2e/ /.;/ /..;/x/../ /%2e%2e/ ;/ ;x=y/ /;/ /;x=y/ /..;/
  %c0%af %e0%80%af %ef%bc%8f %u2215
`);

/** What may follow a path. */
const tails = words(String.raw`
  / // /. /./ /.. /x/.. /%2e /%2e%2e/ %2f %00 %00.json %0a %0d%0a %09 %20 %23 %3f %3b ; ;x ;x=y ;/ . .. .json %2ejson
  \ %5c # #x #/../x ? ?? ?x ?/../../x /? & ~ % %2 %zz %ff %80 %c0%80 * /;
`);

/** What may stand before a path. */
const heads = words(String.raw`
  / // \ /\ /. /./ /.. /x/.. /api/.. /api/me/.. /%2e /%2e%2e /%2e%2e%2f /..; /.; /; /;x /%00 /%09 /%20 /%2f /%5c
  /health/.. /health/..; /health/%2e. /api/docs/.. /api/docs/..%2f.. /api/docs/%2e%2e/%2e%2e /api/docs/x/../../..
  /api/openapi.json/.. /.well-known/jwks.json/../.. /.well-known/.. http://gateway.test http://127.0.0.1 https://x
  http://user@gateway.test HTTP://x file:// //gateway.test ///gateway.test //user@x /https://x * ? # %2f . .. x
`);

const hex = (text: string) =>
  [...text].map((char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`).join('');

/** How a path may be written so that a parser that is more forgiving than ours reads `path` again. */
export function variantsOf(path: string): string[] {
  const last = path.slice(path.lastIndexOf('/') + 1);
  const before = path.slice(0, path.length - last.length);
  const inserted = words('%00 %CC%88 %EF%BB%BF %E2%80%8B %C2%AD');
  const slashesAt = [...path.matchAll(/\//g)].map(({ index }) => index);
  return [
    path.toUpperCase(),
    before + last.toUpperCase(),
    before + last[0]!.toUpperCase() + last.slice(1),
    path.replace('/api', '/Api'),
    path.replace('a', '%61'),
    path.replace('/a', '/%41'),
    before + hex(last),
    before + hex(last).toUpperCase(),
    before + hex(last).replaceAll('%', '%25'),
    before + hex(last[0]!) + last.slice(1),
    before + last.slice(0, -1) + hex(last.at(-1)!),
    `${before}%C3%80/../${last}`,
    ...inserted.map((code) => before + last[0]! + code + last.slice(1)),
    ...slashesAt.flatMap((at) => slashes.map((slash) => path.slice(0, at) + slash + path.slice(at + 1))),
    ...tails.map((tail) => path + tail),
    ...heads.map((head) => head + path),
  ];
}

/** What the most forgiving server could read: decoded as often as possible, every slash a slash, dots resolved. */
export function forgivingReading(target: string): string {
  let path = target.replace(/^[a-z]+:\/\/[^/]*/i, '').split(/[?#]/)[0]!;
  for (let round = 0; round < 5; round += 1) {
    path = path.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
  }
  const clean = path
    .replaceAll('\\', '/')
    .replace(/;[^/]*/g, '')
    // oxlint-disable-next-line no-control-regex
    .replace(/[\0-\x20\x7f-\xff]/g, '')
    .toLowerCase();
  const resolved: string[] = [];
  for (const segment of clean.split(/[?#]/)[0]!.split('/')) {
    if (segment === '..') resolved.pop();
    else if (segment !== '.' && segment !== '') resolved.push(segment);
  }
  return `/${resolved.join('/')}`;
}
