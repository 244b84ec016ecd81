import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Database, startRetention, runRetention } from '@content-platform/chassis';
import { until } from '../../test/support/wait.ts';
import { holdOpen } from '../../test/support/locks.ts';
import { password, useAuth } from './testing/start-auth.ts';
import { retention } from './retention.ts';

let endRetention: (() => Promise<void>) | undefined;
// Defined before the hooks of useAuth, so that no step runs on a closed database.
afterAll(() => endRetention?.());
const auth = useAuth();
beforeAll(() => auth.addUser('ann@example.com', password));

const count = async (rows: string) =>
  (await auth.sql<{ count: number }>(`SELECT count(*)::int FROM auth.${rows}`))[0]!.count;
const round = (query: Database['query'] = auth.database.query, { signal } = new AbortController()) =>
  runRetention(query, retention, auth.logger, signal);
const oldEntries = `INSERT INTO audit.entry (event, at, details)
  SELECT 'login', now() - interval '367 days', '{}' FROM generate_series(1, $1::int)`;
const addOldEntries = (many: number) => auth.sql(oldEntries, many);

/** Opens a session; `ends` and `ended` in days from now. Returns its id. */
async function session(ends: number, ended: number | null, issuer: string | null = null): Promise<number> {
  const text = `INSERT INTO auth.session
      (user_id, device, address, must_change_password, ends_at, ended_at, identity_issuer, id_token, suborgs)
    SELECT id, '', '::1', false, now() + make_interval(days => $1), now() + make_interval(days => $2), $3, $3,
      CASE WHEN $3::text IS NULL THEN NULL ELSE '{}'::text[] END
    FROM auth.user RETURNING id::int`;
  return (await auth.sql<{ id: number }>(text, ends, ended, issuer))[0]!.id;
}
const tokens = `INSERT INTO auth.refresh_token (hash, session_id, replaced_at)
  SELECT decode(md5($1 || ' ' || n), 'hex'), $1::bigint, now() FROM generate_series(1, $2::int) AS n`;
const addTokens = (sessionId: number, many: number) => auth.sql(tokens, String(sessionId), many);

test('deletes a backlog in batches, refresh tokens before their session', async () => {
  await addTokens(await session(-31, null), 2_500);
  await addOldEntries(2_000);
  const deleted: number[] = [];
  await round(async (...statement) => {
    const result = await auth.database.query<never>(...statement);
    const [row] = result.rows as { deleted?: number }[];
    deleted.push(row?.deleted ?? result.rowCount!);
    return result;
  });
  expect(Math.max(...deleted)).toBe(1_000);
  expect(deleted.reduce((sum, rows) => sum + rows)).toBe(4_501);
  expect(await Promise.all(['session', 'refresh_token'].map(count))).toEqual([0, 0]);
});

test('keeps all refresh tokens of a session until all have expired', async () => {
  const kept = [
    await session(1, null),
    await session(-29, null),
    await session(60, -29),
    // The newest session of the identity provider determines the suborgs that the user may choose.
    await session(60, -31, 'https://id.example'),
  ];
  const over = [
    await session(60, -31),
    await session(-31, -40),
    await session(-31, -40, 'https://id.example'),
  ];
  for (const id of [...kept, ...over]) await addTokens(id, 2);
  await round();
  const ids = async (text: string) => (await auth.sql<{ id: number }>(text)).map(({ id }) => id);
  expect(await ids('SELECT id::int FROM auth.session ORDER BY id')).toEqual(kept);
  const owners =
    'SELECT session_id::int AS id FROM auth.refresh_token GROUP BY id HAVING count(*) = 2 ORDER BY id';
  expect(await ids(owners)).toEqual(kept);
});

test('keeps audit entries for a year, those of client tokens for 30 days', async () => {
  await auth.sql('TRUNCATE audit.entry');
  const ages = [1, 29, 31, 364, 367];
  const text = `INSERT INTO audit.entry (event, at, details)
                SELECT $1, now() - make_interval(hours => 24 * unnest($2::int[])), '{}'`;
  for (const event of ['client_token', 'login']) await auth.sql(text, event, ages);
  await round();
  const days = `SELECT event, array_agg(extract(day FROM now() - at)::int ORDER BY id) AS days FROM auth.audit GROUP BY event`;
  expect(await auth.sql(`${days} ORDER BY event`)).toEqual([
    { event: 'client_token', days: [1, 29] },
    { event: 'login', days: [1, 29, 31, 364] },
  ]);
});

test('keeps logins at the identity provider for an hour, codes for a day', async () => {
  const { identityLogins, identityCodes, users } = auth.stores;
  const [young, old] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const { id: userId } = (await users.findByEmail('ann@example.com'))!;
  const login = { nonce: '', codeVerifier: '', returnTo: '', clientState: '', codeChallenge: '' };
  const code = { userId, codeChallenge: '', issuer: '', idToken: '', suborgs: [], mfa: false };
  for (const hash of [young, old]) {
    await identityLogins.add(hash, { ...login, browserHash: hash });
    await identityCodes.add(hash, code);
  }
  const ageLogin = `UPDATE auth.identity_login SET created_at = now() - make_interval(mins => $2) WHERE state_hash = $1`;
  const ageCode = `UPDATE auth.identity_code SET created_at = now() - make_interval(hours => $2) WHERE hash = $1`;
  await auth.sql(ageLogin, young, 59);
  await auth.sql(ageLogin, old, 61);
  await auth.sql(ageCode, young, 23);
  await auth.sql(ageCode, old, 25);
  await round();
  expect((await identityLogins.consume(young))?.expired).toBe(true);
  expect(await identityLogins.consume(old)).toBeUndefined();
  expect((await identityCodes.findAndLock(young))?.state).toBe('expired');
  expect(await identityCodes.findAndLock(old)).toBeUndefined();
});

const over = `session WHERE ends_at < now() - interval '30 days'`;

test('skips a locked row until the next run without a wait', async () => {
  const held = await session(-31, null);
  await session(-31, null);
  const release = await holdOpen(auth.database, (query) =>
    query('hold', 'SELECT FROM auth.session WHERE id = $1 FOR UPDATE', [held]),
  );
  await round().finally(release);
  expect(await count(over)).toBe(1);
  await round();
  expect(await count(over)).toBe(0);
});

test('a failed step does not stop the others, and is retried in the next run', async () => {
  await session(-31, null);
  const old = `audit WHERE at < now() - interval '1 year'`;
  await auth.sql('ALTER TABLE auth.refresh_token RENAME TO hidden');
  await addOldEntries(1);
  auth.log.length = 0;
  endRetention = startRetention(auth.database.query, retention, auth.logger, { firstMs: 0, everyMs: 100 });
  await until('what comes after it is done', async () => (await count(old)) === 0);
  expect(await count(over)).toBe(1);
  expect(JSON.parse(auth.log[0]!)).toMatchObject({ level: 'warn', rows: 'sessions' });
  await auth.sql('ALTER TABLE auth.hidden RENAME TO refresh_token');
  await until('all is done', async () => (await count(over)) === 0);
});

test('starts no further batch and logs nothing when the process stops', async () => {
  await endRetention!();
  await addOldEntries(3_000);
  auth.log.length = 0;
  const stopping = new AbortController();
  let slices = 0;
  const query: Database['query'] = async (...statement) => {
    if (statement[0] === 'delete_audit') {
      slices += 1;
      stopping.abort();
    }
    return auth.database.query<never>(...statement);
  };
  await round(query, stopping);
  expect([slices, auth.log]).toEqual([1, []]);
});
