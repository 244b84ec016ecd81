import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { until } from '../../test/support/wait.ts';
import type { Problem } from './problem.ts';
import { type ProcessSpec, type Supervised, supervise } from './supervised.ts';

let folder: string;
let running: Supervised | undefined;
let starts: number;
let recorded: Set<string>;
let shown: string[];
let abandoned: Problem | undefined;
let restarts: number;

beforeEach(() => {
  folder = temporaryFolder();
  mkdirSync(join(folder, 'logs'));
  [starts, restarts, recorded, shown, abandoned] = [0, 0, new Set(), [], undefined];
});
afterEach(async () => {
  await running?.stop(100);
  running = undefined;
});

/** Supervises a process that runs `script`; it is ready once it has printed "up". */
function supervised(script: string, more: Partial<ProcessSpec> = {}): Supervised {
  let isUp = false;
  const spec: ProcessSpec = {
    name: 'child',
    command: process.execPath,
    args: ['-e', script],
    cwd: folder,
    prepare: async () => (isUp = false),
    ready: async () => {
      if (!isUp) throw new Error('not up yet');
    },
    readyWithinMs: 60_000,
    stopSignal: 'SIGTERM',
    onLine: (line) => {
      if (line !== 'up') return;
      isUp = true;
      starts += 1;
    },
    ...more,
  };
  return (running = supervise(spec, {
    state: {
      path: (...parts) => join(folder, ...parts),
      record: (name) => recorded.add(name),
      forget: (name) => void recorded.delete(name),
    },
    terminal: { line: (text) => void shown.push(text) },
    signal: new AbortController().signal,
    onRestart: () => (restarts += 1),
    onAbandoned: (problem) => (abandoned = problem),
    pauseMs: () => 1,
  }));
}

const server = `console.log('up'); setInterval(() => {}, 1000);`;
const deaf = `process.on('SIGTERM', () => {}); ${server}`;

test('starts a process, keeps its log, and stops it', async () => {
  const child = supervised(server);
  await child.start();
  expect(child.pid).toBeGreaterThan(0);
  expect([...recorded]).toEqual(['child']);
  await child.stop(60_000);
  expect(child.pid).toBe(0);
  expect([...recorded]).toEqual([]);
  expect(readFileSync(join(folder, 'logs', 'child.log'), 'utf8')).toBe('up\n');
  await supervised(server).start();
  expect(readFileSync(join(folder, 'logs', 'child.log.old'), 'utf8')).toBe('up\n');
});

test('writes its log again after writing failed, as on a full disk', async () => {
  rmSync(join(folder, 'logs'), { recursive: true });
  await supervised(`${server} setInterval(() => console.log('later'), 10);`).start();
  mkdirSync(join(folder, 'logs'));
  await until('it is written', () => readFileSync(join(folder, 'logs/child.log'), 'utf8').includes('later'));
});

test('kills a process that ignores its stop signal', async () => {
  const child = supervised(deaf);
  await child.start();
  await child.stop(50);
  expect(child.pid).toBe(0);
});

test.each([
  [
    'ends while it starts',
    `console.log('why'); process.exit(3);`,
    {},
    /^child ended while starting \(exit code 3\); its log is .*child\.log\.$/,
    ['why'],
  ],
  [
    'is not ready in time',
    `setInterval(() => {}, 1000);`,
    { readyWithinMs: 1 },
    /^child was not ready within 0\.0 s/,
    [],
  ],
  ['cannot be started', '', { command: '/nowhere/program' }, /^child ended while starting \(.*ENOENT\)/, []],
])('refuses a process that %s, with the end of its log', async (_, script, more, message, lines) => {
  const failed = supervised(script, more).start();
  await expect(failed).rejects.toMatchObject({ message: expect.stringMatching(message), lines });
});

test('restarts a process that dies', async () => {
  const child = supervised(server);
  await child.start();
  const { pid } = child;
  process.kill(pid, 'SIGKILL');
  await until('it is back', () => restarts === 1);
  expect(child.pid).not.toBe(pid);
  expect(starts).toBe(2);
  expect(shown).toEqual([
    'child died (SIGKILL), starting it again in 0.0 s',
    expect.stringMatching(`^child is back after \\d+\\.\\d s \\(pid ${child.pid}\\)$`),
  ]);
});

test('gives up after five deaths within a minute, also when it dies before it is ready', async () => {
  const once = `const fs = require('fs'); if (fs.existsSync('up')) process.exit(1); fs.writeFileSync('up', '');`;
  const child = supervised(once + server);
  await child.start();
  process.kill(child.pid, 'SIGKILL');
  await until('it is abandoned', () => abandoned);
  expect(abandoned!.message).toMatch(/^child died 5 times within a minute; its log is /);
  expect(child.pid).toBe(0);
});
