import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** Writes a generated page. @throws Error if the page changed */
export function expectPage(file: string, text: string): void {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  writeFileSync(file, text);
  throw new Error(`${file} was rewritten: look at the change and commit it.`);
}
