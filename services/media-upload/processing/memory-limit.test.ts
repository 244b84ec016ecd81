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

test('kills nothing up to the limit', () => {
  expect(killed(40, [20], [20, 20])).toEqual([]);
});

test('kills nothing without jobs, because the memory is this process’s own', () => {
  expect(killed(200, [20], [])).toEqual([]);
});

test('kills an idle worker process first', () => {
  expect(killed(40, [5], [30, 30])).toEqual(['idle 0: idle']);
});

test('kills the youngest job, even if it uses little memory', () => {
  expect(killed(40, [], [60, 1])).toEqual(['busy 1: crowded']);
});

test('reports a job that runs alone as costly if it uses the larger half', () => {
  expect(killed(40, [], [61])).toEqual(['busy 0: costly']);
  expect(killed(70, [], [40])).toEqual(['busy 0: crowded']);
});

test('waits until a killed process has returned its memory', () => {
  expect(killed(40, [], [60, 60], true)).toEqual([]);
});
