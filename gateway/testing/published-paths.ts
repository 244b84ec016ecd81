import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Variant } from './path-grammar.ts';

const folder = '/usr/share/wfuzz/wordlist';
const names = [
  'Injections/Traversal',
  ...['', '-nix', '-win'].map((system) => `vulns/dirTraversal${system}`),
];

/** Prefixes of each path: none, a record, and a file that a service returns. */
const prefixes = ['/', '/api/content/webform/', '/api/media/7/'];

/** Returns published path traversals if this machine has such lists. Skips lines that would end the request line. */
export function publishedPaths(): Variant[] {
  const lines = names
    .map((name) => join(folder, `${name}.txt`))
    .filter((file) => existsSync(file))
    .flatMap((file) => readFileSync(file, 'latin1').split(/\r?\n/))
    .filter((line) => line !== '' && !/[\0\r\n ]/.test(line));
  return [...new Set(lines)].flatMap((line) =>
    prefixes.map((prefix) => ({ method: 'GET', target: prefix + line.replace(/^\//, '') })),
  );
}
