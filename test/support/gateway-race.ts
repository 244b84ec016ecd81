import { type Model, readContent } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newUser } from './accounts.ts';
import { announce } from './events.ts';
import { clear, read } from './platform.ts';
import { database, freshId, save } from './records.ts';
import { stack } from './stack.ts';
import { startTraffic } from './traffic.ts';
import { until } from './wait.ts';

export interface GatewayRaceOptions {
  readsPerSecond: number;
  /** Each is a change of a record, announced in turn by HTTP and through Kafka. */
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
  /** Events that the brokers have taken. */
  events: number;
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
const RECORDS = 12;
/** So few that on a machine that stalls for seconds nobody has more under way than one may, which is 100. */
const READS_PER_USER = 10;
const GIVE_UP_MS = 120_000;

/**
 * Reads and changes records of its own through the gateway, whatever is done to the stack meanwhile, and holds each read
 * against what was acknowledged before it began. Stop it to learn what was seen.
 */
export async function startGatewayRace({ readsPerSecond, changesPerSecond }: GatewayRaceOptions) {
  const records: Watched[] = Array.from({ length: RECORDS }, () => ({
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
    events: 0,
    stale: [],
    lost: [],
  };
  for (const record of records) await save(model, record.id, 'Made');
  const count = Math.ceil(readsPerSecond / READS_PER_USER);
  const users = await Promise.all(Array.from({ length: count }, () => newUser()));

  async function readOne(): Promise<void> {
    const record = records[Math.floor(Math.random() * records.length)]!;
    const { floor } = record;
    const { token } = users[Math.floor(Math.random() * users.length)]!;
    const params = { model, id: record.id };
    const answer = await call(stack().gateway, readContent, { params, token }).catch(() => undefined);
    const { status = 'no answer', error, body, headers } = answer ?? {};
    const told = error ? `${status} ${error.error}` : String(status);
    figures.answers[told] = (figures.answers[told] ?? 0) + 1;
    if (error) figures.failed.push(error.request_id);
    if (headers?.get('x-cache') === 'hit') figures.hits += 1;
    if (status === 200 && body!.version < floor)
      figures.stale.push(`${model} ${record.id}: version ${body!.version}, cleared at ${floor}`);
  }

  /** As a content server does it: the change is committed, then announced until that is acknowledged. */
  async function change(record: Watched, byHttp: boolean): Promise<void> {
    const title = `Change ${Math.random()}`;
    const version = await until('it is committed', () => save(model, record.id, title), GIVE_UP_MS);
    record.title = title;
    if (byHttp) {
      const acknowledged = async () => (await clear(model, record.id)) >= 0;
      const tried = () =>
        acknowledged().catch((error: Error) => {
          figures.refused += 1;
          throw error;
        });
      await until('the clear is acknowledged', tried, GIVE_UP_MS);
      record.floor = Math.max(record.floor, version);
      figures.clears += 1;
    } else {
      const event = JSON.stringify({ model, id: record.id });
      await until('the event is taken', () => announce(event, `${model}:${record.id}`), GIVE_UP_MS);
      figures.events += 1;
    }
  }

  let turn = 0;
  async function changeOne(): Promise<void> {
    const free = records.filter(({ changing }) => !changing);
    const record = free[Math.floor(Math.random() * free.length)];
    if (!record) return;
    record.changing = true;
    await change(record, (turn += 1) % 2 === 0).finally(() => (record.changing = false));
  }

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
        await until('the last change is read', arrived, GIVE_UP_MS).catch(() =>
          figures.lost.push(`${model} ${id}`),
        );
      }
      await database().query('DELETE FROM content.record WHERE model = $1 AND id = ANY ($2)', [
        model,
        records.map(({ id }) => id),
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
