import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { DOWNLOADS, ROOT } from '../../deploy/local/config.ts';

const loadBefore = loadavg();

/**
 * Keeps what was found in test/<kind>/results/<name>.json, from which docs/results.md is written: with the day, the
 * machine, how busy that was when this process began and now (load averages of 1, 5 and 15 minutes), and the `versions` of
 * what was measured. What a quick run found is too little for the page, and lies in .local/quick instead.
 */
export function writeResult(
  kind: 'bench' | 'faults',
  name: string,
  found: object,
  versions: Record<string, string> = {},
): void {
  const machine = {
    cpu: cpus()[0]!.model,
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    versions: { node: process.version.slice(1), ...versions },
    load: { before: loadBefore, after: loadavg() },
  };
  const folder = process.env['PROOF_QUICK']
    ? join(DOWNLOADS, 'quick', kind)
    : join(ROOT, 'test', kind, 'results');
  mkdirSync(folder, { recursive: true });
  const result = { date: new Date().toISOString(), machine, ...found };
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(result, undefined, 2)}\n`);
}
