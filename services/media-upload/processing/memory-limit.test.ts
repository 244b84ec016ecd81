import { expect, test } from '@jest/globals';
import { enforceMemoryLimit } from './memory-limit.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Enforces a limit of 100 bytes on processes with this memory use; returns the killed processes and the reasons. */
function killed(own: number, idle: number[], busy: number[], ending = false): string[] {
  const memory = new Map([[process.pid, own]]);
  const kills: string[] = [];
  const workerOf = (kind: string) => (bytes: number, index: number) => {
    const pid = -1 - memory.size;
    memory.set(pid, bytes);
    const kill = (reason: string) => void kills.push(`${kind} ${index}: ${reason}`);
    return { pid, kill, isEnding: ending && index === 0 } as unknown as WorkerProcess;
  };
  const [resting, working] = [idle.map(workerOf('idle')), busy.map(workerOf('busy'))];
  const memoryOf = (pid: number) => memory.get(pid)!;
  enforceMemoryLimit({ maxBytes: 100, idle: () => resting, busy: () => working, memoryOf });
  return kills;
}

test.each<[string, Parameters<typeof killed>, string[]]>([
  ['nothing up to the limit', [40, [20], [20, 20]], []],
  ['nothing without jobs, because the memory is its own', [200, [20], []], []],
  ['an idle worker process first', [40, [5], [30, 30]], ['idle 0: idle']],
  ['the youngest job, even if it uses little memory', [40, [], [60, 1]], ['busy 1: crowded']],
  ['a job that runs alone as costly if it uses the larger half', [40, [], [61]], ['busy 0: costly']],
  ['a job that runs alone as crowded otherwise', [70, [], [40]], ['busy 0: crowded']],
  ['nothing until a killed process has returned its memory', [40, [], [60, 60], true], []],
])('kills %s', (_, processes, kills) => {
  expect(killed(...processes)).toEqual(kills);
});
