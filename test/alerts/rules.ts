import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';

export const folder = join(ROOT, 'deploy', 'prometheus');

/** The text of each rule file. */
export const ruleFiles = readdirSync(join(folder, 'rules')).map((file) =>
  readFileSync(join(folder, 'rules', file), 'utf8'),
);
export const rules = ruleFiles.join('\n');

/** Returns the first group of every match. */
export const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1]!);

export const unique = (names: string[]) => [...new Set(names)].toSorted();
