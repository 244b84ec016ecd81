import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';

/** Where figures come from. */
export const machine = () => ({
  cpu: cpus()[0]!.model,
  cores: availableParallelism(),
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
});

/**
 * Keeps what was measured in test/<kind>/results/<name>.json, with when and where that was: docs/results.md is written
 * from there.
 */
export function writeResult(kind: 'bench' | 'faults', name: string, found: object): void {
  const folder = join(ROOT, 'test', kind, 'results');
  mkdirSync(folder, { recursive: true });
  const result = { date: new Date().toISOString(), machine: machine(), ...found };
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(result, undefined, 2)}\n`);
}
