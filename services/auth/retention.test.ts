import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLogger, type Database, startRetention, runRetention } from '@content-platform/chassis';
import { until } from '../../test/support/wait.ts';
import { holdOpen } from '../../test/support/locks.ts';
import { startAuth, type TestAuth } from './testing.ts';
import { retention } from './retention.ts';

let auth: TestAuth;
let endUpkeep: (() => Promise<void>) | undefined;
beforeAll(async () => {
  auth = await startAuth();
  await auth.addUser('ann@example.com', 'a long password of theirs');
});
afterAll(async () => {
  await endUpkeep?.();
  await auth.stop();
});

const sql = <Row extends object>(text: string, values: unknown[] = []) =>
  auth.database.query<Row & Record<string, unknown>>('test', text, values).then(({ rows }) => rows);
const count = async (rows: string) =>
  Number((await sql<{ count: string }>(`SELECT count(*) FROM auth.${rows}`))[0]!.count);
const log: string[] = [];
const logger = createLogger('auth', 'info', { write: (line) => void log.push(line) });
const round = (query: Database['query'] = auth.database.query) =>
  runRetention(query, retention, logger, new AbortController().signal);

/** Opens a session; `ends` and `ended` in days from now. Returns its id. */
async function session(ends: number, ended: number | null, issuer: string | null = null): Promise<number> {
  const text = `INSERT INTO auth.session
      (user_id, device, address, must_change_password, ends_at, ended_at, identity_issuer, id_token, suborgs)
    SELECT id, '', '::1', false, now() + make_interval(days => $1), now() + make_interval(days => $2), $3, $3,
      CASE WHEN $3::text IS NULL THEN NULL ELSE '{}'::text[] END
    FROM auth.user RETURNING id`;
  return Number((await sql<{ id: string }>(text, [ends, ended, issuer]))[0]!.id);
}
const addTokens = (sessionId: number, many: number) =>
  sql(
    `INSERT INTO auth.refresh_token (hash, session_id, replaced_at)
     SELECT decode(md5($1 || ' ' || n), 'hex'), $1::bigint, now() FROM generate_series(1, $2::int) AS n`,
    [String(sessionId), many],
  );

test("a backlog goes in slices, a session's refresh tokens before it", async () => {
  const over = await session(-31, null);
  await addTokens(over, 2_500);
  await sql(
    `INSERT INTO auth.audit (event, at) SELECT 'login', now() - interval '367 days' FROM generate_series(1, 2000)`,
  );
  const deleted: number[] = [];
  const query: Database['query'] = async (...statement) => {
    const result = await auth.database.query<never>(...statement);
    deleted.push(result.rowCount!);
    return result;
  };
  await round(query);
  expect(Math.max(...deleted)).toBe(1_000);
  expect(deleted.reduce((sum, rows) => sum + rows)).toBe(4_501);
  expect(await Promise.all(['session', 'refresh_token'].map(count))).toEqual([0, 0]);
  expect(log).toEqual([]);
});

test('all refresh tokens of a session stay until none could be good, those that were just replaced too', async () => {
  const kept = [
    await session(1, null),
    await session(-29, null),
    await session(60, -29),
    // The newest from the identity service says what the person may choose from.
    await session(60, -31, 'https://id.example'),
  ];
  const over = [
    await session(60, -31),
    await session(-31, -40),
    await session(-31, -40, 'https://id.example'),
  ];
  for (const id of [...kept, ...over]) await addTokens(id, 2);
  await round();
  const ids = async (text: string) => (await sql<{ id: string }>(text)).map(({ id }) => Number(id));
  expect(await ids('SELECT id FROM auth.session ORDER BY id')).toEqual(kept);
  const owners =
    'SELECT session_id AS id FROM auth.refresh_token GROUP BY id HAVING count(*) = 2 ORDER BY id';
  expect(await ids(owners)).toEqual(kept);
});

test('audit entries are kept for a year, those of tokens for clients for 30 days', async () => {
  await sql('TRUNCATE auth.audit');
  const ages = [1, 29, 31, 364, 367];
  const text = `INSERT INTO auth.audit (event, at) SELECT $1, now() - make_interval(days => unnest($2::int[]))`;
  for (const event of ['client_token', 'login']) await sql(text, [event, ages]);
  await round();
  const days = `SELECT event, array_agg(extract(day FROM now() - at)::int ORDER BY id) AS days FROM auth.audit GROUP BY event`;
  expect(await sql(`${days} ORDER BY event`)).toEqual([
    { event: 'client_token', days: [1, 29] },
    { event: 'login', days: [1, 29, 31, 364] },
  ]);
});

test('one that somebody holds is left for the next time, and nobody waits', async () => {
  const held = await session(-31, null);
  await session(-31, null);
  const release = await holdOpen(auth.database, (query) =>
    query('hold', 'SELECT FROM auth.session WHERE id = $1 FOR UPDATE', [held]),
  );
  await round().finally(release);
  const over = `session WHERE ends_at < now() - interval '30 days'`;
  expect(await count(over)).toBe(1);
  await round();
  expect(await count(over)).toBe(0);
});

test('a step that fails stops none of the others, and is done the next time', async () => {
  await session(-31, null);
  const addEntry = () =>
    sql(`INSERT INTO auth.audit (event, at) VALUES ('login', now() - interval '367 days')`);
  const over = `session WHERE ends_at < now() - interval '30 days'`;
  const old = `audit WHERE at < now() - interval '1 year'`;
  await sql('ALTER TABLE auth.refresh_token RENAME TO hidden');
  await addEntry();
  endUpkeep = startRetention(auth.database.query, retention, logger, { firstMs: 0, everyMs: 100 });
  await until('what comes after it is done', async () => (await count(old)) === 0);
  expect(await count(over)).toBe(1);
  expect(JSON.parse(log[0]!)).toMatchObject({ level: 'warn', rows: 'sessions' });
  await sql('ALTER TABLE auth.hidden RENAME TO refresh_token');
  await addEntry();
  await until('all is done', async () => (await count(over)) + (await count(old)) === 0);
});

test('when the process stops, no further slice begins and nothing is said', async () => {
  await sql(
    `INSERT INTO auth.audit (event, at) SELECT 'login', now() - interval '367 days' FROM generate_series(1, 3000)`,
  );
  log.length = 0;
  const stopping = new AbortController();
  let slices = 0;
  const query: Database['query'] = async (...statement) => {
    if (statement[0] === 'delete_audit') {
      slices += 1;
      stopping.abort();
    }
    return auth.database.query<never>(...statement);
  };
  await runRetention(query, retention, logger, stopping.signal);
  expect([slices, log]).toEqual([1, []]);
});
