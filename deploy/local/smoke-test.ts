import { login, readContent, type Model } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAccessToken, RefusedToken } from './content-server/access-token.ts';
import { httpAnnouncer, kafkaAnnouncer } from './content-server/announce.ts';
import { openRecords } from './content-server/records.ts';
import type { Settings } from './content-server/settings.ts';
import { DEMO_PASSWORD, DEMO_USER_EMAIL as email } from './demo-data.ts';
import { Problem } from './problem.ts';
import type { Report } from './terminal.ts';

const record: { model: Model; id: number } = { model: 'webform', id: 12 };
const limitMs = 30_000;

type Seen = Awaited<ReturnType<typeof read>>;

/** Thrown if the user has changed a demo account, or if a setting restricts it. */
class ChangedAccount extends Error {}

/**
 * Logs in, reads a record twice, changes it by HTTP and through Kafka, and checks that each read returns the new version.
 * Skips the test if a demo account cannot do this. Reports a line per step. @throws Problem with the failed step
 */
export async function smokeTest(settings: Settings, report: Report): Promise<void> {
  const records = openRecords(settings.database);

  async function step<T>(what: string, work: () => Promise<T>, format: (result: T) => string = () => '') {
    const began = performance.now();
    const result = await work().catch((error: Error) => {
      if (error instanceof ChangedAccount) throw error;
      throw new Problem(`The smoke test failed at: ${what}: ${error.message}`);
    });
    const ms = (performance.now() - began).toFixed(0);
    report(`  ${what.padEnd(34)} ${ms.padStart(5)} ms   ${format(result)}`.trimEnd());
    return result;
  }
  const logIn = (): Promise<string> => logInAsUser(settings);
  const edit = (how: string) =>
    records.edit(record.model, [record.id], `${how} at ${new Date().toISOString().slice(11, 19)}`);
  const shown = ({ cache, version, title }: Seen): string => `${cache}, version ${version}, "${title}"`;

  try {
    const token = await step('login', logIn, () => email);
    const readOnce = (): Promise<Seen> => read(settings.gateway, token);
    await step('read webform 12', readOnce, shown);
    // A new Kafka consumer clears the whole cache when it joins. If that happens now, this takes a third read.
    await step('read it again', () => readUntil(readOnce, ({ cache }) => cache === 'hit'), shown);

    const http = httpAnnouncer(settings);
    const byHttp = await edit('Edited by HTTP');
    await step('edit by HTTP: cleared in', () => http.announce(byHttp, 'updated'));
    const readNew = async (): Promise<Seen> => {
      const seen = await readOnce();
      if (seen.version >= byHttp[0]!.version) return seen;
      throw new Error(`read version ${seen.version} after version ${byHttp[0]!.version} was cleared`);
    };
    await step('read: the new version', readNew, shown);

    if (settings.kafka === null) return report('  There is no Kafka: nothing was announced through it.');
    const kafka = await kafkaAnnouncer(settings);
    try {
      const saved = await edit('Edited through Kafka');
      const clear = async (): Promise<void> => {
        await kafka.announce(saved, 'updated');
        await readUntil(readOnce, ({ version }) => version >= saved[0]!.version);
      };
      await step('edit through Kafka: cleared in', clear);
      await step('read: the new version', readOnce, shown);
    } finally {
      await kafka.close();
    }
  } catch (error) {
    if (!(error instanceof ChangedAccount)) throw error;
    report(`  ${error.message} was changed or is restricted by a setting: the smoke test is skipped.`);
  } finally {
    await records.close();
  }
}

/** Returns a user's token. @throws ChangedAccount, also if the machine client's secret has changed */
async function logInAsUser(settings: Settings): Promise<string> {
  const answer = await call(settings.gateway, login, { body: { email, password: DEMO_PASSWORD } });
  // 429: too many failed logins, for example of earlier starts with the changed password.
  if (answer.status === 401 || answer.status === 429) throw new ChangedAccount(email);
  if (answer.error) throw new Error(`${answer.status} ${answer.error.message}`);
  await createAccessToken(settings)
    .get()
    .catch((error: unknown) => {
      const isChanged = error instanceof RefusedToken && error.status === 401;
      throw isChanged ? new ChangedAccount(`The client ${settings.clientId}`) : error;
    });
  return answer.body.token;
}

async function read(gateway: string, token: string) {
  const answer = await call(gateway, readContent, { params: record, token });
  if (answer.status === 403) throw new ChangedAccount(email);
  if (answer.error) throw new Error(`${answer.status} ${answer.error.message}`);
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  const { title, version } = answer.body;
  return { cache: answer.headers.get('x-cache') ?? '', title, version };
}

/** Reads with growing pauses until the expected version appears; resolves with that read. */
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
