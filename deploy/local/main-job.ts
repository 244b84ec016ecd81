import { login, readContent, type Model } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAccessToken, RefusedToken } from './content-server/access-token.ts';
import { type Announcer, httpAnnouncer, kafkaAnnouncer } from './content-server/announce.ts';
import { openRecords, type Records } from './content-server/records.ts';
import type { Settings } from './content-server/settings.ts';
import { DEMO_PASSWORD } from './demo-accounts.ts';
import { Problem } from './problem.ts';
import type { Report } from './terminal.ts';

const email = 'user@example.com';
const record: { model: Model; id: number } = { model: 'webform', id: 12 };
const limitMs = 30_000;

interface Seen {
  cache: string;
  ms: number;
  title: string;
  version: number;
}

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const began = performance.now();
  return { result: await work(), ms: performance.now() - began };
}

/**
 * What the platform is for, done once through the gateway: log in, read, read again, change the record by HTTP and
 * through Kafka, and see the new version each time. It is left out, and that is told, when the user has changed one of
 * the demo accounts since they were made.
 * @param report gets one line for each step
 * @throws Problem saying which step failed
 */
export async function mainJob(settings: Settings, report: Report): Promise<void> {
  const records = openRecords(settings.database);
  const line = (what: string, ms: number, saw: string): void =>
    report(`  ${what.padEnd(34)} ${ms.toFixed(0).padStart(5)} ms   ${saw}`.trimEnd());
  try {
    const { result: token, ms } = await attempt('login', () => timed(() => logIn(settings.gateway)));
    const changed = token === undefined ? email : await attempt('token', () => changedClient(settings));
    if (token === undefined || changed !== undefined)
      return report(`  ${changed} was changed since the demo data was made: the main job is left out.`);
    line('login', ms, email);
    const readOnce = (): Promise<Seen> => read(settings.gateway, token);
    const show = (what: string, { ms: took, cache, version, title }: Seen): void =>
      line(what, took, `${cache}, version ${version}, "${title}"`);

    show('read webform 12', await attempt('read webform 12', readOnce));
    // A new consumer of events clears everything once when it joins, which may be just now: then this takes a third read.
    const isHit = ({ cache }: Seen): boolean => cache === 'hit';
    show('read it again', await attempt('read it again', () => readUntil(readOnce, isHit)));

    await attempt('edit announced by HTTP', async () => {
      const { version, committed } = await edit(records, httpAnnouncer(settings), 'Edited by HTTP');
      line('edit by HTTP: cleared in', performance.now() - committed, '');
      const seen = await readOnce();
      show('read: the new version', seen);
      if (seen.version < version)
        throw new Error(`read version ${seen.version} after version ${version} was cleared`);
    });
    if (settings.kafka === null) return report('  There is no Kafka: nothing was announced through it.');
    await attempt('edit announced through Kafka', async () => {
      const announcer = await kafkaAnnouncer(settings);
      try {
        const { version, committed } = await edit(records, announcer, 'Edited through Kafka');
        const seen = await readUntil(readOnce, (now) => now.version >= version);
        line('edit through Kafka: cleared in', performance.now() - committed, '');
        show('read: the new version', seen);
      } finally {
        await announcer.close();
      }
    });
  } finally {
    await records.close();
  }
}

async function attempt<T>(step: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Problem(`The main job failed at: ${step}: ${(error as Error).message}`);
  }
}

/** The machine client's name when it is disabled or has another secret now. */
async function changedClient(settings: Settings): Promise<string | undefined> {
  try {
    await createAccessToken(settings).get();
    return undefined;
  } catch (error) {
    if (error instanceof RefusedToken && error.status === 401) return `The client ${settings.clientId}`;
    throw error;
  }
}

/** Undefined when the password is another one now, or the user is disabled. */
async function logIn(gateway: string): Promise<string | undefined> {
  const answer = await call(gateway, login, { body: { email, password: DEMO_PASSWORD } });
  if (answer.error?.error === 'invalid_credentials') return undefined;
  if (answer.error) throw new Error(`${answer.status} ${answer.error.message}`);
  return answer.body.token;
}

async function read(gateway: string, token: string): Promise<Seen> {
  const { result: answer, ms } = await timed(() => call(gateway, readContent, { params: record, token }));
  if (answer.error) throw new Error(`${answer.status} ${answer.error.message}`);
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  const { title, version } = answer.body;
  return { cache: answer.headers.get('x-cache') ?? '', ms, title, version };
}

/** Commits a change, then announces it; `committed` is the time between the two. */
async function edit(
  records: Records,
  announcer: Announcer,
  what: string,
): Promise<{ version: number; committed: number }> {
  const title = `${what} at ${new Date().toISOString().slice(11, 19)}`;
  const saved = await records.edit(record.model, record.id, title);
  const committed = performance.now();
  await announcer.announce(saved, 'updated');
  return { version: saved.version, committed };
}

/** Reads until it sees what it waits for; longer pauses each time. Resolves with that read. */
async function readUntil(readOnce: () => Promise<Seen>, wanted: (seen: Seen) => boolean): Promise<Seen> {
  const deadline = performance.now() + limitMs;
  for (let pause = 5; ; pause = Math.min(pause * 2, 200)) {
    const seen = await readOnce();
    if (wanted(seen)) return seen;
    if (performance.now() > deadline)
      throw new Error(`after ${limitMs / 1000} s it is still ${seen.cache}, version ${seen.version}`);
    await sleep(pause);
  }
}
