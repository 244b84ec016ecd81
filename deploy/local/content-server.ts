// Simulates the content management server: changes records in the database, then announces the changes.
import { listInvalidations, type Model, models } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { createAccessToken } from './content-server/access-token.ts';
import {
  type Announcer,
  httpAnnouncer,
  kafkaAnnouncer,
  keysDeleted,
  noAnnouncer,
} from './content-server/announce.ts';
import { type Command, parseCommand, USAGE } from './content-server/commands.ts';
import { openRecords, type Records, type Saved } from './content-server/records.ts';
import { readSettings, type Settings } from './content-server/settings.ts';
import { steadyTraffic } from './content-server/traffic.ts';
import { DEMO_RECORDS } from './demo-data.ts';
import { Problem, printProblem } from './problem.ts';

type Change = Command & { action: keyof typeof pastTense };

const pastTense = { edit: 'updated', create: 'created', delete: 'deleted' } as const;

const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;

async function change(records: Records, { action, model, ids, title }: Change): Promise<Saved[]> {
  const text = title ?? `Changed at ${new Date().toISOString().slice(11, 23)}`;
  const which = model ?? pick(models);
  if (action === 'create') return [await records.create(which, ids[0], text)];
  if (action === 'delete') return [await records.remove(which, ids[0]!)];
  return records.edit(which, ids.length > 0 ? ids : [1 + Math.floor(Math.random() * DEMO_RECORDS)], text);
}

const announcers = { http: httpAnnouncer, kafka: kafkaAnnouncer, sql: noAnnouncer };

/** Commits before it announces: otherwise a reader could cache the old record again after the clear. */
async function changeAndAnnounce(command: Change, records: Records, announcer: Announcer): Promise<string> {
  const saved = await change(records, command);
  const committed = performance.now();
  const outcome = await announcer.announce(saved, pastTense[command.action]);
  const ms = Math.round(performance.now() - committed);
  const { model, id, title, version } = saved[0]!;
  const what =
    saved.length === 1
      ? `${model} ${id} (version ${version}, "${title}")`
      : `${model} ${command.ids.join(', ')} ("${title}")`;
  return `${pastTense[command.action]} ${what}: ${outcome} in ${ms} ms`;
}

const shownClears = 20;

/** Returns the newest cache clears of a record and of its model, a line for each. @throws Problem without a list */
async function clearsOf(settings: Settings, model: Model, id: number): Promise<string[]> {
  const list = async () => {
    const token = await createAccessToken(settings).get();
    return call(settings.gateway, listInvalidations, { query: { model, id, limit: shownClears }, token });
  };
  const { body, error } = await list().catch((failure: Error) => {
    throw new Problem(`The clears of ${model} ${id} could not be listed: ${failure.message}.`);
  });
  if (error) throw new Problem(`The clears of ${model} ${id} could not be listed: ${error.message}`);
  const lines = body.items.map(
    ({ at, source, target, keys_deleted: keys, requested_by: caller }) =>
      `${at}  ${source.padEnd(8)}  ${target}  ${keysDeleted(keys)}, requested by ${caller}`,
  );
  if (lines.length === 0) return [`${model} ${id} was not cleared in the last 30 days.`];
  return body.next_cursor === null ? lines : [...lines, `These are the newest ${shownClears}.`];
}

async function run(given: Command): Promise<void> {
  const settings = readSettings();
  if (given.action === 'cleared')
    return console.log((await clearsOf(settings, given.model!, given.ids[0]!)).join('\n'));
  // TypeScript has narrowed `given.action` but not `given`.
  const command: Change = { ...given, action: given.action };
  const announcer = await announcers[command.via](settings);
  const records = openRecords(settings.database);
  try {
    const work = (): Promise<string> => changeAndAnnounce(command, records, announcer);
    if (!command.traffic) return console.log(await work());
    const { rate, seconds } = command.traffic;
    const { done, failures, median, slowest, elapsed } = await steadyTraffic(rate, seconds, work);
    const times = `median ${median.toFixed(0)} ms, slowest ${slowest.toFixed(0)} ms`;
    console.log(
      `updated ${done} records in ${(elapsed / 1000).toFixed(1)} s, each announced by ${command.via}: ${times}; ${failures.length} not announced`,
    );
    if (failures.length > 0)
      throw new Problem('Some changes were not announced.', [...new Set(failures)].slice(0, 10));
  } finally {
    await Promise.allSettled([announcer.close(), records.close()]);
  }
}

try {
  const args = process.argv.slice(2);
  if (args[0] === 'help' || args.includes('--help')) console.log(USAGE);
  else await run(parseCommand(args));
} catch (error) {
  printProblem(error);
  process.exitCode = 1;
}
