import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Identity, identityOf, isRunning } from './identity.ts';
import { Problem } from './problem.ts';

/** Made once and kept, so that a second start can read what the first one wrote. */
export interface Secrets {
  postgresPassword: string;
  authKeySecret: string;
  /** What is to take its place, while the keys are being encrypted with it. */
  nextAuthKeySecret?: string;
  contentServerPassword: string;
}

/** A process that was started for this state folder: run/<name>.json. */
export interface RunRecord extends Identity {
  stopSignal: NodeJS.Signals;
}

/** A stack's own folder: secrets, data, logs, and a note of every process it has started. */
export interface State {
  folder: string;
  path: (...parts: string[]) => string;
  /** As they were when it was opened: `npm run admin -- rotate-key-secret` changes one. */
  secrets: Secrets;
  record: (name: string, pid: number, stopSignal: NodeJS.Signals) => void;
  forget: (name: string) => void;
  /** Stops what a killed launcher has left running, and removes its notes; resolves with the number of processes. */
  stopOrphans: (graceMs: number) => Promise<number>;
  release: () => void;
}

/**
 * Makes the folder (0700) if need be and takes it for this process.
 * @param where what to say of this stack to somebody who starts a second one: its address
 * @throws Problem when it cannot be written to, or another launcher has it
 */
export function openState(folder: string, where: string): State {
  const path = (...parts: string[]): string => join(folder, ...parts);
  const lock = path('launcher.json');
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
    takeLock(lock, where);
    for (const part of ['run', 'logs']) mkdirSync(path(part), { recursive: true, mode: 0o700 });
    const secrets = keptSecrets(path('secrets.json'), path('postgres'));
    return {
      folder,
      path,
      secrets,
      record: (name, pid, stopSignal) => {
        const identity = identityOf(pid);
        if (identity) writePrivate(path('run', `${name}.json`), { ...identity, stopSignal });
      },
      forget: (name) => rmSync(path('run', `${name}.json`), { force: true }),
      stopOrphans: async (graceMs) => {
        const orphans = runRecords(path('run')).filter(isRunning);
        await stopRecorded(orphans, graceMs);
        for (const file of readdirSync(path('run'))) rmSync(path('run', file));
        return orphans.length;
      },
      release: () => rmSync(lock, { force: true }),
    };
  } catch (error) {
    if (error instanceof Problem) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new Problem(`Cannot write to ${folder} (${code}): make it a folder that this user may write to.`);
  }
}

/**
 * True when the launcher that had this folder is gone; what it has left running is stopped then.
 * @param graceMs how long such a process may take to end
 */
export async function isAbandoned(folder: string, graceMs: number): Promise<boolean> {
  const holder = readJson<Identity>(join(folder, 'launcher.json'));
  if (holder && isRunning(holder)) return false;
  await stopRecorded(existsSync(join(folder, 'run')) ? runRecords(join(folder, 'run')) : [], graceMs);
  return true;
}

/** Writes JSON so that a reader sees the old file or the new one, never half of one, and nobody else sees it. */
export function writePrivate(file: string, value: unknown): void {
  const draft = `${file}.${process.pid}.new`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(draft, file);
}

function takeLock(lock: string, where: string): void {
  const content = JSON.stringify({ ...identityOf(process.pid), where });
  for (;;) {
    try {
      return writeFileSync(lock, content, { flag: 'wx', mode: 0o600 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = readJson<Identity & { where: string }>(lock);
    if (holder && isRunning(holder))
      throw new Problem(`already running: ${holder.where} (pid ${holder.pid}).`);
    rmSync(lock, { force: true });
  }
}

/** @throws Problem when they are lost and there is data that nobody can use without them */
function keptSecrets(file: string, data: string): Secrets {
  const kept = readJson<Partial<Secrets>>(file);
  if (kept?.postgresPassword && kept.authKeySecret && kept.contentServerPassword) return kept as Secrets;
  const isThere = existsSync(file);
  if (isThere || existsSync(data))
    throw new Problem(
      `${file} ${isThere ? 'cannot be read' : 'is missing'}, and the data in ${data} needs the secrets in it: mend it, or move both away (the demo data is made anew).`,
    );
  const secrets = {
    postgresPassword: randomSecret(),
    authKeySecret: randomSecret(),
    contentServerPassword: randomSecret(),
  };
  writePrivate(file, secrets);
  return secrets;
}

/** 192 bits as 32 characters. */
export const randomSecret = (): string => randomBytes(24).toString('base64url');

const runRecords = (folder: string): RunRecord[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => readJson<RunRecord>(join(folder, file)))
    .filter((record) => record !== undefined);

/** A file's JSON; undefined when the file is not there or is not JSON, as after a crash in the middle of a write. */
export function readJson<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T;
  } catch {
    return undefined;
  }
}

/**
 * Stops processes that are not children of ours: their stop signal first, SIGKILL for the whole group when they
 * are still there after `graceMs`.
 */
export async function stopRecorded(records: RunRecord[], graceMs: number): Promise<void> {
  const signal = (pid: number, name: NodeJS.Signals): void => {
    try {
      process.kill(pid, name);
    } catch {
      // gone in the meantime
    }
  };
  for (const record of records) if (isRunning(record)) signal(record.pid, record.stopSignal);
  const deadline = Date.now() + graceMs;
  while (records.some(isRunning) && Date.now() < deadline) await sleep(50);
  for (const record of records) if (isRunning(record)) signal(-record.pid, 'SIGKILL');
  while (records.some(isRunning)) await sleep(20);
}
