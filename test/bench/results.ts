import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';

const loadBefore = loadavg();

/**
 * Writes test/bench/results/<name>.json: what was measured, on what, and how busy that was when this process began and
 * now (the load averages of 1, 5 and 15 minutes).
 */
export function writeResult(name: string, versions: Record<string, string>, measured: object): void {
  const machine = {
    cpu: cpus()[0]!.model,
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    versions: { node: process.version.slice(1), ...versions },
    load: { before: loadBefore, after: loadavg() },
  };
  const folder = join(ROOT, 'test/bench/results');
  mkdirSync(folder, { recursive: true });
  const content = { date: new Date().toISOString(), machine, ...measured };
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(content, undefined, 2)}\n`);
}
