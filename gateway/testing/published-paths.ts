import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Variant } from './path-grammar.ts';

/** Where Debian's package wfuzz has its lists. */
const folder = '/usr/share/wfuzz/wordlist';
const files = [
  'Injections/Traversal.txt',
  'vulns/dirTraversal.txt',
  'vulns/dirTraversal-nix.txt',
  'vulns/dirTraversal-win.txt',
];

/** Behind what each of them is tried: nothing, a record, and a file that a service gives out. */
const prefixes = ['/', '/api/content/webform/', '/api/media/7/'];

/** Published ways out of a folder, where this machine has such lists; else none. A line that ends a request line is none. */
export function publishedPaths(): Variant[] {
  const lines = files
    .map((name) => join(folder, name))
    .filter((file) => existsSync(file))
    .flatMap((file) => readFileSync(file, 'latin1').split(/\r?\n/))
    .filter((line) => line !== '' && !/[\0\r\n ]/.test(line));
  return [...new Set(lines)].flatMap((line) =>
    prefixes.map((prefix) => ({ method: 'GET', target: prefix + line.replace(/^\//, '') })),
  );
}
