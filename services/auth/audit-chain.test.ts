import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { createDatabase, createMetrics, runRetention } from '@content-platform/chassis';
import { holdOpen } from '../../test/support/locks.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { startAuditChain } from './audit-chain.ts';
import { byUser } from './audit-store.ts';
import { verifyAudit } from './commands/verify-audit.ts';
import { retention } from './retention.ts';
import { createAuthDatabase } from './stores.ts';
import { openAuthService, runCommand } from './testing/start-auth.ts';

const service = useStarted(openAuthService);
let auth: ReturnType<typeof createAuthDatabase>;
const closers: (() => Promise<unknown>)[] = [];
beforeAll(() => void (auth = createAuthDatabase(service.database)));
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  await sql('TRUNCATE audit.entry, audit.link, audit.unlinked, audit.person RESTART IDENTITY');
});

/** Runs statements with the owner's rights, as an attacker who has the owner's credentials. */
const sql = (text: string) => service.sql(text);
const verify = (...args: string[]) => runCommand(service.databaseUrl, verifyAudit, args);
const deleteExpired = () =>
  runRetention(service.database.query, retention, service.logger, new AbortController().signal);

async function addFive() {
  await auth.audit.add({ event: 'user_created', userId: 7, actor: 'command', details: { roles: ['user'] } });
  await auth.audit.add({ ...byUser(7, '192.0.2.7'), event: 'login', details: { session: 1 } });
  await auth.audit.add({ event: 'login_failed', userId: 7, address: '192.0.2.8' });
  await auth.audit.addClientToken('cms', '192.0.2.9');
  await auth.audit.add({ event: 'user_changed', userId: 7, actor: 'user:8', address: '192.0.2.10' });
  return auth.audit.link(100);
}
/** Moves all entries and their links into the past, and computes the chain again. */
const ageBy = (interval: string) =>
  sql(`UPDATE audit.entry SET at = at - interval '${interval}'`)
    .then(() => sql('TRUNCATE audit.link'))
    .then(() => sql('INSERT INTO audit.unlinked SELECT id FROM audit.entry'))
    .then(() => auth.audit.link(1_000));

test('finds no fault in an unchanged chain, and names its newest link', async () => {
  expect(await verify()).toBe('The audit log is intact: 0 links.');
  const links = await addFive();
  const { seq, hash } = links.at(-1)!;
  expect(seq).toBe(5);
  await auth.audit.add({ event: 'key_secret_rotated', actor: 'command' });
  expect(await verify()).toBe(
    `The audit log is intact: 5 links. 1 new entries wait for their link.\nThe newest link, for --contains: 5:${hash}`,
  );
  expect(await verify('--contains', `3:${links[2]!.hash}`)).toMatch(/^The audit log is intact/);
});

const hashOf = (seq: number) => `(SELECT hash FROM audit.link WHERE seq = ${seq})`;

test.each([
  [
    'a changed entry',
    `UPDATE audit.entry SET details = '{"session": 2}' WHERE id = 2`,
    'link 2: its entry was changed',
  ],
  [
    'a changed time',
    `UPDATE audit.entry SET at = at - interval '1 s' WHERE id = 3`,
    'link 3: its entry was changed',
  ],
  ['a deleted entry', 'DELETE FROM audit.entry WHERE id = 3', 'link 3: its entry was deleted'],
  [
    'a deleted entry whose link looks expired',
    `WITH gone AS (DELETE FROM audit.entry WHERE id = 3)
     UPDATE audit.link SET at = at - interval '2 years' WHERE seq = 3`,
    'link 3: it was changed',
  ],
  [
    'reordered entries',
    `UPDATE audit.link SET seq = CASE seq WHEN 2 THEN 93 ELSE 92 END WHERE seq IN (2, 3);
     UPDATE audit.link SET seq = seq - 90 WHERE seq > 90`,
    'link 2: it was changed',
  ],
  [
    'an inserted entry',
    `INSERT INTO audit.entry (event, details) VALUES ('login', '{}')`,
    'entry 6: it has no link',
  ],
  [
    'an inserted entry with a link',
    `WITH entry AS (INSERT INTO audit.entry (event, details) VALUES ('login', '{}') RETURNING *)
     INSERT INTO audit.link SELECT 6, id, at, event, audit.hash_of(entry), ${hashOf(5)} FROM entry`,
    'link 6: it was changed',
  ],
  [
    'a missing link in the middle',
    'DELETE FROM audit.link WHERE seq = 3; DELETE FROM audit.entry WHERE id = 3',
    'link 4: links before it are missing',
  ],
  [
    'a missing beginning',
    'DELETE FROM audit.link WHERE seq < 3; DELETE FROM audit.entry WHERE id < 3',
    'link 3: links before it are missing',
  ],
  ['a removed newest link', 'DELETE FROM audit.link WHERE seq = 5', 'entry 5: it has no link'],
])('verify-audit finds %s', async (_, attack, fault) => {
  await addFive();
  for (const statement of attack.split(';')) await sql(statement);
  await expect(verify()).rejects.toThrow(`The audit log was changed. First fault: ${fault}.`);
});

test('verify-audit checks a chain of many pages to its end', async () => {
  await sql(`INSERT INTO auth.audit (event) SELECT 'logout' FROM generate_series(1, 11000)`);
  // In steps, as the service does: a statement has a time limit.
  for (let linked = 0; linked < 11_000; linked += 1_000) await auth.audit.link(1_000);
  expect(await verify()).toMatch(/^The audit log is intact: 11000 links\./);
  await sql(`INSERT INTO audit.entry (event, details) VALUES ('login', '{}')`);
  await expect(verify()).rejects.toThrow('First fault: entry 11001: it has no link.');
  await sql(`UPDATE audit.entry SET event = 'login' WHERE id = 10999`);
  await expect(verify()).rejects.toThrow('First fault: link 10999: its entry was changed.');
});

test('a stored link proves that the chain was cut off or rewritten', async () => {
  const links = await addFive();
  const stored = `4:${links[3]!.hash}`;
  await sql('DELETE FROM audit.entry WHERE id > 3');
  await sql('DELETE FROM audit.link WHERE seq > 3');
  expect(await verify()).toMatch(/^The audit log is intact: 3 links\./);
  await expect(verify('--contains', stored)).rejects.toThrow('The audit log has no link 4: it was cut off');
  await auth.audit.add({ event: 'user_deleted', userId: 7 });
  await auth.audit.link(100);
  await expect(verify('--contains', stored)).rejects.toThrow(/^The audit log was rewritten: link 4 is 4:/);
  await expect(verify('--contains', '4')).rejects.toThrow('--contains must be SEQ:HASH');
});

test('the chain stays intact when a person is deleted, and the log shows the entries without the person', async () => {
  await addFive();
  await sql('DELETE FROM audit.person WHERE user_id = 7');
  expect(await verify()).toMatch(/^The audit log is intact: 5 links\./);
  const entries = await auth.audit.list({}, undefined, 10);
  expect(entries.toReversed()).toMatchObject([
    { event: 'user_created', user_id: null, actor: 'command', address: null },
    { event: 'login', user_id: null, actor: 'user', address: null, details: { session: 1 } },
    { event: 'login_failed', user_id: null, actor: null, address: '192.0.2.8' },
    { event: 'client_token', user_id: null, actor: 'client:cms', address: '192.0.2.9' },
    { event: 'user_changed', user_id: null, actor: 'user:8', address: '192.0.2.10' },
  ]);
});

test('the chain stays intact when entries, people without entries and old links are deleted', async () => {
  await addFive();
  await ageBy('31 days');
  await deleteExpired();
  expect(await sql('SELECT count(*)::int FROM audit.entry')).toEqual([{ count: 4 }]);
  expect(await verify()).toMatch(/^The audit log is intact: 5 links\./);
  await sql(`UPDATE audit.person SET unused_since = unused_since - interval '2 hours'`);
  await deleteExpired();
  expect(await sql(`SELECT FROM audit.person WHERE address = '192.0.2.9'`)).toEqual([]);
  expect(await sql('SELECT FROM audit.person')).toHaveLength(4);

  await ageBy('2 years');
  await auth.audit.add({ event: 'user_deleted', userId: 7, actor: 'command' });
  await auth.audit.link(100);
  await deleteExpired();
  expect(await sql('SELECT seq::int FROM audit.link ORDER BY seq')).toEqual([{ seq: 4 }, { seq: 5 }]);
  expect(await verify()).toMatch(/^The audit log is intact: 2 links\./);
  expect(await auth.audit.list({ userId: 7 }, undefined, 10)).toMatchObject([{ event: 'user_deleted' }]);
});

test('two processes link concurrent entries once each, and log them without personal data', async () => {
  const other = createDatabase({
    url: service.databaseUrl,
    logger: service.logger,
    metrics: createMetrics('auth'),
  });
  closers.push(other.close);
  const stops = [auth, createAuthDatabase(other)].map((one) => startAuditChain(one, service.logger, 5));
  closers.push(...stops);
  const add = async (user: number) => {
    for (let n = 0; n < 20; n += 1)
      await auth.audit.add({ ...byUser(900_000 + user, `198.51.100.${user}`), event: 'logout' });
  };
  await Promise.all([1, 2, 3, 4, 5].map(add));
  await until('all are linked', async () => (await sql('SELECT FROM audit.link')).length === 100);
  await Promise.all(closers.splice(1).map((stop) => stop()));
  expect(await verify()).toMatch(/^The audit log is intact: 100 links\.\n/);
  const lines = service.log.filter((line) => line.includes('added an entry to the audit log'));
  expect(lines).toHaveLength(100);
  const { audit } = JSON.parse(lines[0]!) as { audit: object };
  const text: unknown = expect.any(String);
  expect(Object.keys(audit).join()).toBe('seq,hash,id,at,event,about,sender,actor,details');
  expect(audit).toMatchObject({ seq: 1, event: 'logout', about: text, sender: text, actor: 'user' });
  expect(lines.join('')).not.toMatch(/198\.51\.100|90000\d/);
});

test('a process that crashes while it links loses no entry', async () => {
  await addFive();
  await auth.audit.add({ event: 'user_deleted', userId: 7 });
  const crash = new Error('the process crashed');
  const crashing = auth.transaction(async ({ audit }) => {
    expect(await audit.link(100)).toHaveLength(1);
    expect(await auth.audit.link(100)).toEqual([]);
    throw crash;
  });
  await expect(crashing).rejects.toBe(crash);
  expect(await auth.audit.link(100)).toMatchObject([{ seq: 6, event: 'user_deleted' }]);
  expect(await verify()).toMatch(/^The audit log is intact: 6 links\./);
});

test('an entry of a transaction that commits late is linked after newer ones', async () => {
  const commit = await holdOpen(service.database, (query) =>
    createAuthDatabase({ ...service.database, query }).audit.add({ event: 'logout', userId: 1 }),
  );
  await auth.audit.add({ event: 'login', userId: 2 });
  expect(await auth.audit.link(100)).toMatchObject([{ event: 'login' }]);
  await commit();
  expect(await auth.audit.link(100)).toMatchObject([{ event: 'logout' }]);
  expect(await verify()).toMatch(/^The audit log is intact: 2 links\./);
});
