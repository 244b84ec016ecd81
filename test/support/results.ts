import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { DOWNLOADS, ROOT } from '../../deploy/local/config.ts';

/** Environment variables that change a measurement; a run with any of them is not published. */
const settings = [
  'PROOF_QUICK',
  'BENCH_SCALE',
  'EVENTS',
  'IDLE_CLIENTS',
  'OVERLOAD_SECONDS',
  'RACE_READS',
  'SCHEMATHESIS_EXAMPLES',
  'SLOW_CLIENTS',
];

/** Records the machine's load, before anything starts: the results report the load of other programs. */
export function noteLoad(): void {
  process.env['LOAD_BEFORE'] = String(loadavg()[0]);
}

const lineWidth = 118;

/** Formats JSON; each array or object that fits on a line takes one line. */
export function compactJson(value: unknown, indent = ''): string {
  const flat = JSON.stringify(value);
  if (typeof value !== 'object' || value === null || indent.length + flat.length <= lineWidth) return flat;
  const deeper = `${indent}  `;
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const parts = Array.isArray(value)
    ? value.map((each) => compactJson(each, deeper))
    : Object.entries(value)
        .filter(([, each]) => each !== undefined)
        .map(([key, each]) => `${JSON.stringify(key)}: ${compactJson(each, deeper)}`);
  return `${open}\n${parts.map((part) => deeper + part).join(',\n')}\n${indent}${close}`;
}

/** Adds the date, the machine, its prior load, and the `versions` of the measured software. */
export function dated(found: object, versions: Record<string, string> = {}) {
  const machine = {
    cpu: cpus()[0]!.model,
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    versions: { node: process.version.slice(1), ...versions },
    loadBefore: Number(process.env['LOAD_BEFORE']),
  };
  return { date: new Date().toISOString(), machine, ...found };
}

/** Writes test/<kind>/results/<name>.json, the source of docs/project; after a reduced run, to .local/quick. */
export function writeResult(
  kind: 'bench' | 'faults',
  name: string,
  found: object,
  versions?: Record<string, string>,
): void {
  const isWhole = settings.every((setting) => process.env[setting] === undefined);
  const folder = isWhole ? join(ROOT, 'test', kind, 'results') : join(DOWNLOADS, 'quick', kind);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.json`), `${compactJson(dated(found, versions))}\n`);
}
