import { createHmac, randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Identity, identityOf, isRunning, sendSignal } from './identity.ts';
import { Problem } from './problem.ts';

/** Created once and kept, so that later starts can read existing data. */
export interface Secrets {
  postgresPassword: string;
  authKeySecret: string;
  /** The next key secret, during a rotation. */
  nextAuthKeySecret?: string;
  contentServerPassword: string;
}

/** A process of this state folder, recorded in run/<name>.json. */
type RunRecord = Identity & { stopSignal: NodeJS.Signals };

export type State = ReturnType<typeof openState>;

/**
 * Opens the state folder of a stack and locks it for this process: secrets, data, logs, and a record of every process.
 * @param where URL of this stack, for the error message when a second launcher starts
 * @throws Problem if the folder is not writable or another launcher has locked it
 */
export function openState(folder: string, where: string) {
  const path = (...parts: string[]): string => join(folder, ...parts);
  const lock = path('launcher.json');
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
    acquireLock(lock, where);
    for (const part of ['run', 'logs']) mkdirSync(path(part), { recursive: true, mode: 0o700 });
    const secrets = loadOrCreateSecrets(path('secrets.json'), path('postgres'));
    return {
      folder,
      path,
      /** The secrets at the time of opening. `npm run admin -- rotate-key-secret` changes one of them. */
      secrets,
      record: (name: string, pid: number, stopSignal: NodeJS.Signals): void => {
        const identity = identityOf(pid);
        if (identity) writePrivate(path('run', `${name}.json`), { ...identity, stopSignal });
      },
      forget: (name: string): void => rmSync(path('run', `${name}.json`), { force: true }),
      /** Stops the processes that a killed launcher left running and removes their records; resolves with their number. */
      stopOrphans: async (graceMs: number): Promise<number> => {
        const stopped = await stopRecorded(path('run'), graceMs);
        for (const file of readdirSync(path('run'))) rmSync(path('run', file));
        return stopped;
      },
      release: (): void => rmSync(lock, { force: true }),
    };
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    if (error instanceof Problem || code === 'ENOSPC') throw error;
    throw new Problem(`Cannot write to ${folder} (${code}): make it a folder that this user may write to.`);
  }
}

/** Writes JSON atomically to a file that only the owner can read. */
export function writePrivate(file: string, value: unknown): void {
  const draft = `${file}.${process.pid}.new`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(draft, file);
}

function acquireLock(lock: string, where: string): void {
  const content = JSON.stringify({ ...identityOf(process.pid), where });
  for (;;) {
    try {
      return writeFileSync(lock, content, { flag: 'wx', mode: 0o600 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = readJson<Identity & { where: string }>(lock);
    if (holder && isRunning(holder))
      throw new Problem(`already running: ${holder.where} (pid ${holder.pid}): stop it first.`);
    rmSync(lock, { force: true });
  }
}

/** @throws Problem if the secrets are lost and there is data that needs them */
function loadOrCreateSecrets(file: string, data: string): Secrets {
  const kept = readJson<Partial<Secrets>>(file);
  if (kept?.postgresPassword && kept.authKeySecret && kept.contentServerPassword) return kept as Secrets;
  const isThere = existsSync(file);
  if (isThere || existsSync(data))
    throw new Problem(
      `${file} ${isThere ? 'cannot be read' : 'is missing'}, and the data in ${data} needs the secrets in it. Restore the file, or move both (the next start creates the demo data again).`,
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

/** Derives a secret for one purpose from a stored one, so that every start gets the same without a file of its own. */
export const derivedSecret = ({ postgresPassword }: Secrets, purpose: string): string =>
  createHmac('sha256', postgresPassword).update(purpose).digest('base64url');

/** Returns the JSON of a file; undefined if the file is missing or is not JSON, for example after a crash during a write. */
export function readJson<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T;
  } catch {
    return undefined;
  }
}

/** Stops the processes in a folder of records with their stop signal; after `graceMs` with SIGKILL for the group. */
export async function stopRecorded(folder: string, graceMs: number): Promise<number> {
  const records = globSync('*.json', { cwd: folder })
    .flatMap((file) => readJson<RunRecord>(join(folder, file)) ?? [])
    .filter(isRunning);
  for (const { pid, stopSignal } of records) sendSignal(pid, stopSignal);
  const deadline = Date.now() + graceMs;
  while (records.some(isRunning) && Date.now() < deadline) await sleep(50);
  for (const { pid } of records.filter(isRunning)) sendSignal(-pid, 'SIGKILL');
  while (records.some(isRunning)) await sleep(20);
  return records.length;
}
