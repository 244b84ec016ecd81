// `npm run render`: writes every file that is generated from the service list, settings, stored results and dashboard code.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../local/config.ts';
import { printProblem } from '../local/problem.ts';
import { renderFiles } from './files.ts';

try {
  for await (const [file, text] of renderFiles()) writeFileSync(join(ROOT, file), text);
} catch (error) {
  printProblem(error);
  process.exitCode = 1;
}
