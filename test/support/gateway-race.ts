import { setTimeout as sleep } from 'node:timers/promises';
import { type Model, readContent } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newUser, tokensOf } from './accounts.ts';
import { announce } from './events.ts';
import { clear, read } from './platform.ts';
import { database, freshId, save } from './records.ts';
import { stack } from './stack.ts';
import { startTraffic } from './traffic.ts';
import { until } from './wait.ts';

interface GatewayRaceOptions {
  readsPerSecond: number;
  /** Alternates between a hot record, announced over HTTP, and a new record, announced through Kafka. */
  changesPerSecond: number;
}

const noFigures = () => ({
  answers: {} as Record<string, number>,
  /** Request ids of failed reads, to find the reason in the logs. */
  failed: [] as string[],
  hits: 0,
  /** Number of acknowledged clears; `refused` counts refused attempts, which are retried. */
  clears: 0,
  refused: 0,
  /** The record keys of the events that Kafka acknowledged; each key occurs once. */
  announced: [] as string[],
  /** Reads that began after an acknowledged clear and returned an older version than the one committed before it. */
  stale: [] as string[],
  /** Records whose last change is in the database and was never returned by a read. */
  lost: [] as string[],
});
export type GatewayRaceFigures = ReturnType<typeof noFigures>;

/** `floor`: the oldest version that a read beginning now may return. */
const newRecord = () => ({ id: freshId(), title: '', floor: 0, changing: false });
type Watched = ReturnType<typeof newRecord>;

const model: Model = 'condition';
const recordCount = 12;
const changed = 'Changed';
/** Low enough to stay under the limit of 100 in-flight requests per user when the machine stalls for seconds. */
const readsPerUser = 10;
const changeTimeoutMs = 120_000;
/** Long enough for the many changes that wait together while Kafka is down. */
const readAgainMs = 1_000;

/** Reads and changes its own records during faults, and compares each read with the clears acknowledged before it. */
export async function startGatewayRace({ readsPerSecond, changesPerSecond }: GatewayRaceOptions) {
  const records = Array.from({ length: recordCount }, newRecord);
  const figures = noFigures();
  for (const record of records) await save(model, record.id, 'Made');
  const count = Math.ceil(readsPerSecond / readsPerUser);
  const users = await Promise.all(Array.from({ length: count }, async () => tokensOf(await newUser())));

  async function readOne(): Promise<void> {
    const record = records[Math.floor(Math.random() * records.length)]!;
    const { floor } = record;
    const user = users[Math.floor(Math.random() * users.length)]!;
    const params = { model, id: record.id };
    const answer = await user()
      .then((token) => call(stack().gateway, readContent, { params, token }))
      .catch(() => undefined);
    const { status = 'no answer', error, body, headers } = answer ?? {};
    const outcome = error ? `${status} ${error.error}` : String(status);
    figures.answers[outcome] = (figures.answers[outcome] ?? 0) + 1;
    if (error) figures.failed.push(error.request_id);
    if (headers?.get('x-cache') === 'hit') figures.hits += 1;
    if (status === 200 && body!.version < floor)
      figures.stale.push(`${model} ${record.id}: version ${body!.version}, cleared at ${floor}`);
  }

  const commit = (id: number, title: string): Promise<number> =>
    until('it is committed', () => save(model, id, title), changeTimeoutMs);

  /** Changes a record as a content server does: commits first, then announces until the clear is acknowledged. */
  async function change(record: Watched): Promise<void> {
    const title = `Change ${Math.random()}`;
    const version = await commit(record.id, title);
    record.title = title;
    const acknowledged = async () => (await clear(model, record.id)) >= 0;
    const tried = () =>
      acknowledged().catch((error: Error) => {
        figures.refused += 1;
        throw error;
      });
    await until('the clear is acknowledged', tried, changeTimeoutMs);
    record.floor = Math.max(record.floor, version);
    figures.clears += 1;
  }

  /** Only a record that never changes again can show whether this event was lost. */
  async function changeNew(): Promise<void> {
    const id = freshId();
    await commit(id, 'Made');
    await read(model, id).catch(() => undefined);
    await commit(id, changed);
    const target = `${model}:${id}`;
    const send = () => announce(JSON.stringify({ model, id }), target);
    await until('the event is acknowledged', send, changeTimeoutMs);
    figures.announced.push(target);
    // The wait ends before the cache entry would expire without the event.
    const arrived = async () => {
      const { title } = await read(model, id);
      if (title !== changed) await sleep(readAgainMs);
      return title === changed;
    };
    await until('the change is read', arrived, changeTimeoutMs).catch(() => figures.lost.push(target));
  }

  async function changeWatched(): Promise<void> {
    const free = records.filter(({ changing }) => !changing);
    const record = free[Math.floor(Math.random() * free.length)];
    if (!record) return;
    record.changing = true;
    await change(record).finally(() => (record.changing = false));
  }

  let turn = 0;
  const changeOne = (): Promise<void> => ((turn += 1) % 2 === 0 ? changeWatched() : changeNew());

  const failures: Error[] = [];
  const changes = startTraffic(changesPerSecond, () =>
    changeOne().catch((error: Error) => void failures.push(error)),
  );
  const reads = startTraffic(readsPerSecond, readOne);
  return {
    figures,
    /** Ends the traffic and waits until every record's last change is returned. */
    async stop(): Promise<GatewayRaceFigures> {
      await changes.stop();
      await reads.stop();
      if (failures.length > 0) throw failures[0]!;
      for (const { id, title } of records.filter((record) => record.title !== '')) {
        const arrived = async () => (await read(model, id)).title === title;
        await until('the last change is read', arrived, changeTimeoutMs).catch(() =>
          figures.lost.push(`${model} ${id}`),
        );
      }
      await database().query('DELETE FROM content.record WHERE model = $1 AND id = ANY ($2)', [
        model,
        [...records.map(({ id }) => id), ...figures.announced.map((target) => Number(target.split(':')[1]))],
      ]);
      return figures;
    },
  };
}

/** Runs a race while `work` acts on the stack; `work` can read the interim figures. Resolves with the final figures. */
export async function raceWhile(
  options: GatewayRaceOptions,
  work: (figures: Readonly<GatewayRaceFigures>) => Promise<void>,
): Promise<GatewayRaceFigures> {
  const race = await startGatewayRace(options);
  try {
    await work(race.figures);
  } catch (error) {
    await race.stop().catch(() => undefined);
    throw error;
  }
  return race.stop();
}
