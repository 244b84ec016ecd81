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

export interface GatewayRaceOptions {
  readsPerSecond: number;
  /** In turn a change of a record that is read all the time, announced by HTTP, and one of a new record, through Kafka. */
  changesPerSecond: number;
}

export interface GatewayRaceFigures {
  /** How many reads were answered with each status, and with which error. */
  answers: Record<string, number>;
  /** The ids of requests that failed, by which the logs say why. */
  failed: string[];
  hits: number;
  /** Clears that were acknowledged, and those that were refused and tried again. */
  clears: number;
  refused: number;
  /** What the events that the brokers have taken are about, each of them something else. */
  announced: string[];
  /** Reads that began after a clear was acknowledged and returned less than was committed when it was sent. */
  stale: string[];
  /** Records whose last change is in the database and never came to be read. */
  lost: string[];
}

interface Watched {
  id: number;
  title: string;
  /** What a read that begins now must return at least. */
  floor: number;
  changing: boolean;
}

const model: Model = 'condition';
const recordCount = 12;
const changed = 'Changed';
/** So few that on a machine that stalls for seconds nobody has more under way than one may, which is 100. */
const readsPerUser = 10;
const changeTimeoutMs = 120_000;
/** Many wait at once where Kafka stands still. */
const readAgainMs = 1_000;

/**
 * Reads and changes records of its own through the gateway, whatever is done to the stack meanwhile, and holds each read
 * against what was acknowledged before it began. Stop it to learn what was seen.
 */
export async function startGatewayRace({ readsPerSecond, changesPerSecond }: GatewayRaceOptions) {
  const records: Watched[] = Array.from({ length: recordCount }, () => ({
    id: freshId(),
    title: '',
    floor: 0,
    changing: false,
  }));
  const figures: GatewayRaceFigures = {
    answers: {},
    failed: [],
    hits: 0,
    clears: 0,
    refused: 0,
    announced: [],
    stale: [],
    lost: [],
  };
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
    const told = error ? `${status} ${error.error}` : String(status);
    figures.answers[told] = (figures.answers[told] ?? 0) + 1;
    if (error) figures.failed.push(error.request_id);
    if (headers?.get('x-cache') === 'hit') figures.hits += 1;
    if (status === 200 && body!.version < floor)
      figures.stale.push(`${model} ${record.id}: version ${body!.version}, cleared at ${floor}`);
  }

  const commit = (id: number, title: string): Promise<number> =>
    until('it is committed', () => save(model, id, title), changeTimeoutMs);

  /** As a content server does it: the change is committed, then announced until that is acknowledged. */
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

  /** Only of a record that nobody changes again can be told whether this very event was lost. */
  async function changeNew(): Promise<void> {
    const id = freshId();
    await commit(id, 'Made');
    await read(model, id).catch(() => undefined);
    await commit(id, changed);
    const target = `${model}:${id}`;
    await until('the event is taken', () => announce(JSON.stringify({ model, id }), target), changeTimeoutMs);
    figures.announced.push(target);
    // Sooner than it would be forgotten without the event.
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
    /** Ends the traffic, and waits until each last change is what is read. */
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

/** Races while `work` is done to the stack; `work` can see the figures so far. Resolves with what was seen in the end. */
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
