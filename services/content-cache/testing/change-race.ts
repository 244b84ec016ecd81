import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { listChanges, models as allModels } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { until } from '../../../test/support/wait.ts';
import { startKilledService } from './killed-service.ts';
import { startTestStores } from './test-stores.ts';

/** Minimum number of writes, of rollbacks and of deletions. */
const minEach = 10;

interface ChangeRaceOptions {
  clients: number;
  writers: number;
  /** Records of each model, so that writers meet. */
  records: number;
  /** Number of times that a process is killed, each after this pause, and once the process before has started again. */
  kills: number;
  pauseMs: number;
  /** Minimum number of replies that were up to date. */
  checked: number;
}

/** The state of a record. The time distinguishes a state from one with the same version that was rolled back. */
interface State {
  version: number;
  deleted: boolean;
  changed_at: string;
}
type Item = State & { model: string; id: number };
type States = Map<string, State>;

const nameOf = ({ model, id }: { model: string; id: number }) => `${model}:${id}`;
const asText = (name: string, { version, deleted, changed_at }: State) =>
  `${name} version ${version}${deleted ? ' deleted' : ''} at ${changed_at}`;
const any = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;

/**
 * Clients list all changes once and then follow them, while writers commit and roll back, and processes of the service are
 * killed. After each reply that is up to date, a client must have at least the states that were committed before that
 * request; each state that it ever gets must have been committed; at the end it must have exactly the database's records.
 */
export async function raceChanges({ clients, writers, records, kills, pauseMs, checked }: ChangeRaceOptions) {
  const world = await startTestStores();
  const pool = new pg.Pool({ connectionString: world.databaseUrl, max: writers });
  const addresses: { url: string; token: string }[] = [];
  const services = [0, 1].map((index) =>
    startKilledService({ databaseUrl: world.databaseUrl, redisUrl: world.redis.url }, (line) => {
      if (line['message'] === 'test service started') addresses[index] = line as never;
    }),
  );
  const figures = { writes: 0, rollbacks: 0, deletions: 0, kills: 0, replies: 0, checked: 0, retries: 0 };
  const violations: string[] = [];
  const latest: States = new Map();
  const committed = new Set<string>();
  const seen = new Set<string>();
  /** The last deletion of each record, which may not be committed yet. */
  const deletions = new Map<string, number>();
  const ending = new AbortController();

  async function transaction(client: pg.PoolClient): Promise<void> {
    await client.query('BEGIN');
    const count = Math.random() < 0.05 ? Math.min(50, records) : 1 + Math.floor(Math.random() * 3);
    const [model, first] = [any(allModels), 1 + Math.floor(Math.random() * (records - count + 1))];
    for (let id = first; id < first + count; id += 1) {
      const isDeletion = Math.random() < 0.25;
      const text = isDeletion
        ? `DELETE FROM content.${model} WHERE id = $1`
        : `INSERT INTO content.${model} (id, title, body) VALUES ($1, 'New', '{}') ON CONFLICT (id) DO UPDATE SET title = 'Changed'`;
      const { rowCount } = await client.query(text, [id]);
      if (isDeletion) figures.deletions += rowCount!;
    }
    if (Math.random() < 0.2) await sleep(Math.random() * 500);
    if (Math.random() < 0.2) throw new Error('rolled back');
    const text = `SELECT model, id::int, version::int, deleted, changed_at FROM content.change WHERE xid = pg_current_xact_id()`;
    const { rows } = await client.query<Omit<Item, 'changed_at'> & { changed_at: Date }>(text);
    for (const row of rows) if (row.deleted) deletions.set(nameOf(row), row.version);
    // Before the commit: a client may have the state before this process gets the reply.
    for (const row of rows)
      committed.add(asText(nameOf(row), { ...row, changed_at: row.changed_at.toISOString() }));
    await client.query('COMMIT');
    figures.writes += rows.length;
    for (const { changed_at, ...row } of rows) {
      if ((latest.get(nameOf(row))?.version ?? 0) > row.version) continue;
      latest.set(nameOf(row), { ...row, changed_at: changed_at.toISOString() });
    }
  }

  async function write(): Promise<void> {
    const client = await pool.connect();
    try {
      await transaction(client);
    } catch {
      figures.rollbacks += 1;
      await client.query('ROLLBACK');
    } finally {
      client.release();
    }
    await sleep(Math.random() * 20);
  }

  function createClient(models: readonly string[] | undefined) {
    const copy: States = new Map();
    let after: string | undefined;
    const visible = models ?? allModels.filter((model) => model !== 'accesscode');

    /** Asks until a process answers. Returns whether the reply was up to date. */
    async function step(): Promise<boolean> {
      const floor = new Map(latest);
      const isFirst = after === undefined;
      const { url, token } = any(addresses);
      const query = {
        limit: 1 + Math.floor(Math.random() * 60),
        ...(after && { after }),
        ...(models && { models: models.join() }),
      };
      const { body } = await call(url, listChanges, { query, token }).catch(() => ({ body: undefined }));
      if (!body) {
        figures.retries += 1;
        await sleep(50);
        return false;
      }
      figures.replies += 1;
      after = body.next_cursor;
      for (const item of body.items) {
        copy.set(nameOf(item), item);
        seen.add(asText(nameOf(item), item));
        if (!visible.includes(item.model)) violations.push(`the model of ${nameOf(item)} is not visible`);
      }
      if (body.up_to_date) check(floor, isFirst);
      return body.up_to_date;
    }

    function check(floor: States, isFirst: boolean): void {
      figures.checked += 1;
      for (const [name, state] of floor) {
        if (!visible.includes(name.split(':')[0]!)) continue;
        const found = copy.get(name);
        // The first reply leaves out deleted records.
        if (!found && isFirst && (deletions.get(name) ?? 0) > state.version) continue;
        if (found ? found.version < state.version : !state.deleted)
          violations.push(
            `${asText(name, state)} was committed; the client has ${found?.version ?? 'nothing'}`,
          );
      }
    }

    async function follow(): Promise<void> {
      if (await step()) await sleep(Math.random() * 50);
    }

    /** Reads what is left, and compares the copy with the database. */
    async function finish(): Promise<void> {
      await until('the client is up to date', step, 30_000);
      const text = 'SELECT model, id::int, version::int FROM content.record WHERE model = ANY ($1)';
      const rows = await world.sql<{ model: string; id: number; version: number }>(text, visible);
      const existing = [...copy].filter(([, { deleted }]) => !deleted);
      const mine = existing.map(([name, { version }]) => `${name} version ${version}`).toSorted();
      const theirs = rows.map((row) => `${nameOf(row)} version ${row.version}`).toSorted();
      if (mine.join() !== theirs.join())
        violations.push(`the copy differs from the database: ${mine.join()}`);
    }
    return { follow, finish };
  }

  async function loop(work: () => Promise<void>): Promise<void> {
    while (!ending.signal.aborted) await work();
  }

  try {
    const areStarted = () => services.every((service) => service.hasStarted());
    await until('the processes are started', areStarted, 60_000);
    const scopes = [undefined, ['webform'], ['webform', 'condition']];
    const following = Array.from({ length: clients }, (_, index) =>
      createClient(scopes[index % scopes.length]),
    );
    const running = [
      ...following.map(({ follow }) => loop(follow)),
      ...Array.from({ length: writers }, () => loop(write)),
    ];
    while (figures.kills < kills) {
      await sleep(pauseMs);
      await until('the processes are started', areStarted, 60_000);
      await services[figures.kills % 2]!.killAndReplace();
      figures.kills += 1;
    }
    await sleep(pauseMs);
    const hasEnough = () =>
      figures.checked >= checked && Math.min(figures.writes, figures.rollbacks, figures.deletions) >= minEach;
    await until('enough has happened', hasEnough, 120_000);
    ending.abort();
    await Promise.all(running);
    for (const { finish } of following) await finish();
    for (const state of seen) if (!committed.has(state)) violations.push(`${state} was never committed`);
    return { ...figures, violations };
  } finally {
    ending.abort();
    await Promise.all(services.map((service) => service.stop()));
    await pool.end();
    await world.close();
  }
}
