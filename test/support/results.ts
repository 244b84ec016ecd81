import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';

/** The machine that figures come from. */
export const machine = () => ({
  cpu: cpus()[0]!.model,
  cores: availableParallelism(),
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  kernel: readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim(),
  node: process.version,
});

/** Keeps what was measured in test/<kind>/results/<name>.json, with the day and the machine: docs/results.md tells it. */
export async function writeResult(kind: 'bench' | 'faults', name: string, figures: object): Promise<void> {
  const folder = join(ROOT, 'test', kind, 'results');
  await mkdir(folder, { recursive: true });
  const day = new Date().toISOString().slice(0, 10);
  const text = JSON.stringify({ day, machine: machine(), ...figures }, undefined, 2);
  await writeFile(join(folder, `${name}.json`), `${text}\n`);
}
