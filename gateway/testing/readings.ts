const decodeOnce = (path: string) =>
  path.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)));

/** Decodes percent-encoding as most servers do: as UTF-8 if valid, otherwise byte by byte. */
function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return decodeOnce(path);
  }
}

function resolveDots(path: string): string {
  const resolved: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') resolved.splice(Math.max(1, resolved.length - 1));
    else if (segment !== '.') resolved.push(segment);
  }
  return /\/\.{1,2}$/.test(path) ? `${resolved.join('/')}/` : resolved.join('/');
}

/** Transformations that common servers apply to a path before routing. */
const habits: Record<string, (path: string) => string> = {
  'a backslash is a slash': (path) => path.replaceAll('\\', '/'),
  'matrix parameters go': (path) => path.replace(/;[^/]*/g, ''),
  'cut at ;': (path) => path.replace(/;.*/s, ''),
  'cut at NUL': (path) => path.replace(/(?:\0|%00).*/s, ''),
  'cut at ? or #': (path) => path.replace(/[?#].*/s, ''),
  'slashes collapse': (path) => path.replace(/\/{2,}/g, '/'),
  'dots are resolved': resolveDots,
};

function combinations<T>(list: readonly T[]): T[][] {
  return list.reduce<T[][]>((some, item) => [...some, ...some.map((one) => [...one, item])], [[]]);
}
const combined = combinations(Object.keys(habits));

/** Returns the ways in which servers may read a path: not decoded, decoded once or twice, each with any transformation. */
export function readingsOf(target: string): Set<string> {
  const path = target.replace(/[?#].*/s, '');
  const decodings = [path, decode(path), decode(decode(path)), decodeOnce(decodeOnce(path))];
  // Most paths are plain, and every server reads them in the same way.
  if (!/[\\;%?#\0]|\/\/|\/\.{1,2}(?:\/|$)/.test(path)) return new Set([path]);
  return new Set(
    [...new Set(decodings)].flatMap((decoded) =>
      combined.map((names) => names.reduce((read, name) => habits[name]!(read), decoded)),
    ),
  );
}
