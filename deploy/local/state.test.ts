import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from '@jest/globals';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { identityOf, isRunning } from './identity.ts';
import { openState } from './state.ts';

let folder: string;
beforeEach(() => void (folder = join(temporaryFolder(), 'state')));

test('recognizes a process of macOS in another time zone', () => {
  const { platform } = process;
  Object.defineProperty(process, 'platform', { value: 'darwin' });
  process.env.TZ = 'Asia/Tokyo';
  const self = identityOf(process.pid)!;
  process.env.TZ = 'UTC';
  const isKnown = isRunning(self);
  delete process.env.TZ;
  Object.defineProperty(process, 'platform', { value: platform });
  expect(isKnown).toBe(true);
});

test('allows one launcher per folder and ignores the lock of a process that has ended', () => {
  const state = openState(folder, 'http://here');
  expect(() => openState(folder, 'http://there')).toThrow(
    `already running: http://here (pid ${process.pid}): stop it first.`,
  );
  state.release();
  const gone = { ...identityOf(process.pid), began: 'another boot', where: 'x' };
  writeFileSync(join(folder, 'launcher.json'), JSON.stringify(gone));
  openState(folder, 'http://there').release();
  writeFileSync(join(folder, 'launcher.json'), '{"pid":'); // truncated by a crash
  openState(folder, 'http://there').release();
});

test('refuses a folder that is not writable', () => {
  writeFileSync(join(folder, '..', 'file'), '');
  expect(() => openState(join(folder, '..', 'file', 'below'), '')).toThrow(
    /^Cannot write to .*below \(ENOTDIR\): make it/,
  );
});

test('keeps secrets in a file that only the owner can read', () => {
  const first = openState(folder, '');
  first.release();
  expect(openState(folder, '').secrets).toEqual(first.secrets);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(statSync(join(folder, 'secrets.json')).mode & 0o777).toBe(0o600);
});

test('does not replace lost secrets while data needs them', () => {
  mkdirSync(join(folder, 'postgres'), { recursive: true });
  expect(() => openState(folder, '')).toThrow(/secrets\.json is missing, .* move both/);
  for (const broken of ['{"postgresPassword":', '{}', 'null']) {
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    writeFileSync(join(folder, 'secrets.json'), broken);
    expect(() => openState(folder, '')).toThrow(/secrets\.json cannot be read, .*\. Restore the file/);
    expect(readFileSync(join(folder, 'secrets.json'), 'utf8')).toBe(broken);
  }
});

test('kills a recorded process that ignores its signal and spares one with another start time', async () => {
  const state = openState(folder, '');
  const script = "process.on('SIGTERM', () => {}); console.log('up'); setInterval(() => {}, 1000)";
  const deaf = spawn(process.execPath, ['-e', script], { detached: true });
  await once(deaf.stdout, 'data');
  const ended = once(deaf, 'exit');
  state.record('deaf', deaf.pid!, 'SIGTERM');
  const self = { ...identityOf(process.pid)!, began: 'long ago', stopSignal: 'SIGKILL' } as const;
  writeFileSync(join(folder, 'run', 'self.json'), JSON.stringify(self));
  expect(await state.stopOrphans(300)).toBe(1);
  expect(await ended).toEqual([null, 'SIGKILL']);
  // The next start may run fewer processes: without Kafka no step would overwrite or remove its record.
  expect(readdirSync(join(folder, 'run'))).toEqual([]);
});
