import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { identityOf, isRunning } from './identity.ts';
import { openState } from './state.ts';

let folder: string;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'state-test-')), 'state');
});
afterEach(() => rmSync(join(folder, '..'), { recursive: true, force: true }));

test('a process is told apart from another with the same pid', () => {
  const self = identityOf(process.pid)!;
  expect(isRunning(self)).toBe(true);
  expect(isRunning({ ...self, began: `${self.began}1` })).toBe(false);
});

test("a folder is one launcher's at a time; a lock of a process that is gone does not count", () => {
  const state = openState(folder, 'http://here');
  expect(() => openState(folder, 'http://there')).toThrow(
    `already running: http://here (pid ${process.pid}).`,
  );
  state.release();
  const gone = { ...identityOf(process.pid), began: 'another boot', where: 'x' };
  writeFileSync(join(folder, 'launcher.json'), JSON.stringify(gone));
  openState(folder, 'http://there').release();
  writeFileSync(join(folder, 'launcher.json'), '{"pid":'); // as a crash leaves it
  openState(folder, 'http://there').release();
});

test('refuses a folder that cannot be written to', () => {
  writeFileSync(join(folder, '..', 'file'), '');
  expect(() => openState(join(folder, '..', 'file', 'below'), '')).toThrow(
    /^Cannot write to .*below \(ENOTDIR\): make it/,
  );
});

test('secrets are kept, and for nobody else', () => {
  const first = openState(folder, '');
  first.release();
  const second = openState(folder, '');
  expect(second.secrets).toEqual(first.secrets);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(statSync(join(folder, 'secrets.json')).mode & 0o777).toBe(0o600);
});

test('secrets that are lost are not replaced while there is data that needs them', () => {
  mkdirSync(join(folder, 'postgres'), { recursive: true });
  expect(() => openState(folder, '')).toThrow(/secrets\.json is missing, .* move both away/);
  for (const broken of ['{"postgresPassword":', '{}', 'null']) {
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    writeFileSync(join(folder, 'secrets.json'), broken);
    expect(() => openState(folder, '')).toThrow(/secrets\.json cannot be read, .*: mend it/);
    expect(readFileSync(join(folder, 'secrets.json'), 'utf8')).toBe(broken);
  }
});

test('a recorded process that minds its signal not is killed; one with another start is left alone', async () => {
  const state = openState(folder, '');
  const deaf = spawn(
    process.execPath,
    ['-e', "process.on('SIGTERM', () => {}); console.log('up'); setInterval(() => {}, 1000)"],
    {
      detached: true,
    },
  );
  await once(deaf.stdout, 'data');
  const ended = once(deaf, 'exit');
  state.record('deaf', deaf.pid!, 'SIGTERM');
  const self = { ...identityOf(process.pid)!, began: 'long ago', stopSignal: 'SIGKILL' } as const;
  writeFileSync(join(folder, 'run', 'self.json'), JSON.stringify(self));
  expect(await state.stopOrphans(300)).toBe(1);
  expect(await ended).toEqual([null, 'SIGKILL']);
  // The next start may not have all of them: without Kafka nobody would overwrite or remove its note.
  expect(readdirSync(join(folder, 'run'))).toEqual([]);
});
