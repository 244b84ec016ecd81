// Compose profile `demo`: adds the demo data, then simulates a content server and a client with steady traffic.
import { writeFileSync } from 'node:fs';
import { login, models, readContent } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { httpAnnouncer, kafkaAnnouncer } from '../../local/content-server/announce.ts';
import { openRecords } from '../../local/content-server/records.ts';
import type { Settings } from '../../local/content-server/settings.ts';
import { steadyTraffic } from '../../local/content-server/traffic.ts';
import { DEMO_CLIENT, DEMO_PASSWORD, DEMO_RECORDS, DEMO_USER_EMAIL } from '../../local/demo-data.ts';
import { smokeTest } from '../../local/smoke-test.ts';
import { seed } from '../../local/seed.ts';
import { untilStopped } from '../../local/until-stopped.ts';
import { readDemoConfig } from './config.ts';

const EDITS_A_SECOND = 1;
const READS_A_SECOND = 10;
/** Interval of the progress lines. */
const REPORT_SECONDS = 60;
/** Marker file in a volume. While it exists, make-secrets.mjs refuses a BIND_ADDRESS other than loopback. */
const DATA_FILE = '/demo/data-is-there';
/** Marker file for the container's health check. */
const READY_FILE = '/tmp/ready';

/** Number of records that get most of the reads, as in real traffic. */
const FAVOURITES = 10;

const randomUpTo = (count: number): number => 1 + Math.floor(Math.random() * count);
const anyModel = () => models[randomUpTo(models.length) - 1]!;

async function logIn(gateway: string): Promise<string> {
  const answer = await call(gateway, login, { body: { email: DEMO_USER_EMAIL, password: DEMO_PASSWORD } });
  if (answer.error) throw new Error(`no login: ${answer.error.message}`);
  return answer.body.token;
}

/** Simulates a client: each call reads one demo record. @throws the error of a failed read */
function createReader(gateway: string): () => Promise<void> {
  let token: Promise<string> | undefined;
  return async () => {
    token ??= logIn(gateway).catch((error: unknown) => {
      token = undefined;
      throw error;
    });
    const id = Math.random() < 0.8 ? randomUpTo(FAVOURITES) : randomUpTo(DEMO_RECORDS);
    const params = { model: anyModel(), id };
    const answer = await call(gateway, readContent, { params, token: await token });
    // The token has expired: the next read logs in again.
    if (answer.status === 401) token = undefined;
    if (answer.error) throw new Error(`no read: ${answer.status} ${answer.error.message}`);
  };
}

/** Edits a random demo record and announces the change, alternating between HTTP and Kafka. */
async function createEditor(settings: Settings): Promise<() => Promise<void>> {
  const records = openRecords(settings.database);
  const announcers = [httpAnnouncer(settings), await kafkaAnnouncer(settings)];
  let edits = 0;
  return async () => {
    const announcer = announcers[(edits += 1) % announcers.length]!;
    const edited = await records.edit(anyModel(), [randomUpTo(DEMO_RECORDS)], `Edit ${edits} of the demo`);
    await announcer.announce(edited, 'updated');
  };
}

async function play(signal: AbortSignal): Promise<number> {
  const config = readDemoConfig();
  writeFileSync(DATA_FILE, '');
  await seed(config.DATABASE_URL);
  const settings: Settings = {
    database: config.CONTENT_SERVER_DATABASE_URL,
    gateway: config.GATEWAY_URL,
    kafka: config.KAFKA_BROKERS.join(','),
    kafkaPassword: config.KAFKA_PASSWORD,
    clientId: DEMO_CLIENT.name,
    clientSecret: DEMO_CLIENT.secret,
  };
  await smokeTest(settings, console.log);
  writeFileSync(READY_FILE, '');
  const [edit, read] = [await createEditor(settings), createReader(config.GATEWAY_URL)];
  while (!signal.aborted) {
    const [edits, reads] = await Promise.all([
      steadyTraffic(EDITS_A_SECOND, REPORT_SECONDS, edit, signal),
      steadyTraffic(READS_A_SECOND, REPORT_SECONDS, read, signal),
    ]);
    console.log(`edited ${edits.done} records and read ${reads.done}`);
    for (const failure of new Set([...edits.failures, ...reads.failures])) console.log(`  ${failure}`);
  }
  return 0;
}

await untilStopped(play, 0);
