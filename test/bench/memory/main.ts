// `npm run bench -- memory`: checks that the memory of the processes does not grow under a steady mixed load, for half an
// hour or MEMORY_MINUTES. Each minute every process collects garbage and reports its heap. Exits with 1 if one grows.
import { closeRecords } from '../../support/records.ts';
import { pidOf, stack } from '../../support/stack.ts';
import { openLoop } from '../open-loop.ts';
import { conclude } from '../verdict.ts';
import { judge, judgeLoad } from './goals.ts';
import { lookAt, type Held } from '../../support/heap.ts';
import { mixedLoad } from './load.ts';

const minutes = Math.max(3, Number(process.env['MEMORY_MINUTES'] ?? 30));
const perSecond = Number(process.env['MEMORY_PER_SECOND'] ?? 40);
/** Seconds of load in each minute; the rest is for the samples. */
const loadSeconds = 50;

const kinds = await mixedLoad();
const names = Object.keys(stack().services);
const pids = Object.fromEntries(names.map((name) => [name, pidOf(name)]));
const samples = Object.fromEntries(names.map((name) => [name, [] as Held[]]));
const errors: Record<string, number> = {};
let sent = 0;

console.log(`What is held after a collection, in MB: ${perSecond} requests a second for ${minutes} minutes`);
for (let minute = 1; minute <= minutes; minute += 1) {
  const outcomes = await openLoop(kinds, perSecond, loadSeconds);
  sent += outcomes.length;
  for (const { kind, error } of outcomes) {
    const what = `${kind}: ${error}`;
    if (error !== undefined) errors[what] = (errors[what] ?? 0) + 1;
  }
  for (const name of names) samples[name]!.push(await lookAt(pids[name]!));
  const shown = names.map((name) => `${name} ${(samples[name]!.at(-1)!.heap / 1e6).toFixed(1)}`);
  console.log(`  ${String(minute).padStart(3)} min  ${shown.join('  ')}`);
}
await closeRecords();

const restarted = names.filter((name) => pidOf(name) !== pids[name]);
const failed = Object.values(errors).reduce((sum, count) => sum + count, 0);
const verdicts = [
  ...names.map((name) => judge(name, samples[name]!)),
  judgeLoad(sent, failed),
  { isHeld: restarted.length === 0, text: `restarts during the run: ${restarted.join(', ') || 'none'}` },
];
for (const [error, count] of Object.entries(errors)) console.log(`  ${count} × ${error}`);
conclude('memory', verdicts, {
  settings: { minutes, perSecond, kinds: kinds.map(({ name, weight }) => ({ name, weight })) },
  sent,
  errors,
  restarted,
  verdicts,
  samples,
});
