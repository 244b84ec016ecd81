import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';

const other = (): number[] => readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).map(Number);

/** Where and when a measurement was made. `load`: the machine's load averages (Linux). */
export function machine() {
  return {
    date: new Date().toISOString(),
    cpu: cpus()[0]!.model,
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    load: other(),
  };
}

/** Keeps what was measured: `file` is relative to the repository. */
export function writeResult(file: string, result: object): void {
  const path = join(ROOT, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify({ machine: machine(), ...result }, undefined, 2)}\n`);
  console.log(`Written to ${file}`);
}
