import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';

export const folder = join(ROOT, 'deploy', 'prometheus');

export const ruleFiles = readdirSync(join(folder, 'rules')).map((file) =>
  readFileSync(join(folder, 'rules', file), 'utf8'),
);
export const rules = ruleFiles.join('\n');

export const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1]!);

export const unique = (names: string[]) => [...new Set(names)].toSorted();

export const alertNames = unique(all(rules, /- alert: (\w+)/g));
