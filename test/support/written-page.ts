import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** Compares a generated page with its file. If they differ, rewrites the file and throws an Error. */
export function expectPageIsCurrent(file: string, text: string): void {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  writeFileSync(file, text);
  throw new Error(`${file} was outdated and is now rewritten: check the change with git diff and commit it.`);
}
