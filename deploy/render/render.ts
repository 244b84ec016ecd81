// `npm run render`: writes every file that is generated from the service list, settings, stored results and dashboard code.
// With --check it writes nothing and fails if a file is outdated.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../local/config.ts';
import { Problem, printProblem } from '../local/problem.ts';
import { renderFiles } from './files.ts';

/** Returns the generated files whose text differs from the one on disk, and dashboards that nothing generates. */
async function outdatedFiles(): Promise<string[]> {
  const folder = 'grafana/dashboards';
  const leftover = new Set(readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`));
  const outdated: string[] = [];
  for await (const [file, text] of renderFiles()) {
    const path = join(ROOT, file);
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text) outdated.push(file);
    leftover.delete(file);
  }
  return [...new Set([...outdated, ...leftover])];
}

try {
  if (process.argv.includes('--check')) {
    const files = await outdatedFiles();
    if (files.length > 0)
      throw new Problem(
        `Outdated: ${files.join(', ')}. Run npm run render, check the change and commit it. Delete a dashboard that it does not write.`,
      );
  } else {
    for await (const [file, text] of renderFiles()) writeFileSync(join(ROOT, file), text);
  }
} catch (error) {
  printProblem(error);
  process.exitCode = 1;
}
