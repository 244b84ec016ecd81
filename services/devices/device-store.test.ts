import { beforeAll, expect, test } from '@jest/globals';
import { createHash, randomInt, randomUUID } from 'node:crypto';
import { type DeviceStore, deleteUnseenDevices, maxDevices } from './device-store.ts';
import { holdOpen, untilBlocked } from '../../test/support/locks.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { openDevices } from './testing/devices.ts';

const own = useStarted(openDevices);
let devices: DeviceStore;
beforeAll(() => void ({ devices } = own));
const session = 1;
const someone = () => randomInt(1, 2 ** 40);
const newToken = () => `token-${randomUUID()}`;
const phone = { platform: 'ios', name: 'Phone', app_version: '1.0' } as const;
const tokensOf = async (userId: number) =>
  (await devices.listTokens(userId, undefined, 100)).map(({ token }) => token);
const older = 'UPDATE devices.device SET last_seen_at = now() - make_interval(days => $2) WHERE token = $1';
const versionsOf = (token: string) =>
  own.sql('SELECT app_version FROM devices.device WHERE token = $1', token);
/** Makes the device last seen this number of days ago. */
const age = (token: string, days: number) => own.sql(older, token, days);
/** Makes a user with the maximum number of devices, the least recently seen first. */
async function fullUser() {
  const userId = someone();
  const tokens = Array.from({ length: maxDevices }, newToken);
  for (const [index, token] of tokens.entries()) {
    await devices.register(userId, session, { token });
    await age(token, maxDevices - index);
  }
  return { userId, tokens };
}

test('identifies a device by its token, and keeps fields that are omitted', async () => {
  const userId = someone();
  const token = newToken();
  const first = await devices.register(userId, session, { token, ...phone });
  await age(token, 61);
  expect(await devices.list(userId, undefined, 10)).toMatchObject([{ id: first.id, stale: true }]);
  const again = await devices.register(userId, session, { token, name: 'My phone', app_version: '1.1' });
  expect(again).toEqual({ ...first, name: 'My phone', last_seen_at: again.last_seen_at, stale: false });
  expect(Date.parse(again.last_seen_at)).toBeGreaterThan(Date.parse(first.last_seen_at));
  expect(await versionsOf(token)).toEqual([{ app_version: '1.1' }]);
});

test('makes a new device, without the old data, of a token that another user had', async () => {
  const [before, after] = [someone(), someone()];
  const token = newToken();
  const old = await devices.register(before, session, { token, ...phone });
  const kept = await devices.register(after, session, { token: newToken() });
  const moved = await devices.register(after, session, { token });
  expect(moved).toMatchObject({ platform: null, name: null, token_end: token.slice(-6) });
  expect(moved.id).toBeGreaterThan(kept.id);
  expect(Date.parse(moved.registered_at)).toBeGreaterThan(Date.parse(old.registered_at));
  expect(await versionsOf(token)).toEqual([{ app_version: null }]);
  expect(await devices.list(before, undefined, 10)).toEqual([]);
  expect((await devices.list(after, undefined, 10)).map(({ id }) => id)).toEqual([moved.id, kept.id]);
  expect(await devices.delete(before, moved.id)).toBe(false);
});

test.each([
  ['a', ''],
  ['ab', 'b'],
  ['abcdef', 'bcdef'],
  ['abcdefg', 'bcdefg'],
  ['x'.repeat(4_090) + '"\\$1;~', '"\\$1;~'],
])('never shows a complete token: %#', async (token, token_end) => {
  expect(await devices.register(someone(), session, { token })).toMatchObject({ token_end });
});

test('distinguishes tokens that differ in case only, or after thousands of equal characters', async () => {
  const userId = someone();
  const long = randomUUID().padEnd(4_095, 'x');
  const tokens = ['a', 'A'].flatMap((end) => [long + end, `${end}-${userId}`]);
  for (const token of tokens) await devices.register(userId, session, { token });
  expect(await tokensOf(userId)).toEqual(tokens.toReversed());
});

test('replaces the least recently seen of too many devices', async () => {
  const { userId, tokens } = await fullUser();
  const [first, second, third] = tokens as [string, string, string];
  await devices.register(userId, session, { token: first });
  expect(await tokensOf(userId)).toHaveLength(maxDevices);
  const newest = newToken();
  await devices.register(userId, session, { token: newest });
  const left = await tokensOf(userId);
  expect(left).toHaveLength(maxDevices);
  expect(left).toEqual(expect.arrayContaining([newest, first, third]));
  expect(left).not.toContain(second);
});

test("keeps 20 of 40 concurrent registrations, including each round's newest", async () => {
  for (let round = 0; round < 5; round += 1) {
    const userId = someone();
    const registered = await Promise.all(
      Array.from({ length: 40 }, () => devices.register(userId, session, { token: newToken() })),
    );
    const items = await devices.list(userId, undefined, 100);
    expect(items).toHaveLength(maxDevices);
    const latest = registered.reduce((a, b) => (a.last_seen_at > b.last_seen_at ? a : b));
    expect(items.map(({ id }) => id)).toContain(latest.id);
  }
});

test('gives a token to exactly one of two users that register it concurrently', async () => {
  for (let round = 0; round < 50; round += 1) {
    const users = [someone(), someone()];
    const token = newToken();
    if (round % 2) await devices.register(someone(), session, { token });
    await Promise.all(users.map((userId) => devices.register(userId, session, { token })));
    const text = 'SELECT user_id FROM devices.device WHERE token = $1';
    const owners = await own.sql<{ user_id: string }>(text, token);
    expect(owners).toHaveLength(1);
    expect(users).toContain(Number(owners[0]!.user_id));
  }
});

test('registrations that wait for each other leave connections for others, and end with their client', async () => {
  const userId = someone();
  const lock = `SELECT pg_advisory_xact_lock(hashtextextended('devices.user ' || $1, 0))`;
  const release = await holdOpen(own.database, (query) => query('test', lock, [userId]));
  const register = () => devices.register(userId, session, { token: newToken() }, AbortSignal.timeout(1));
  const waiting = Promise.allSettled(Array.from({ length: 12 }, register));
  await expect(devices.list(someone(), undefined, 1).finally(release)).resolves.toEqual([]);
  expect((await waiting).filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
});

test('does not wait for a device that is moving to another user', async () => {
  const [one, another] = [await fullUser(), await fullUser()];
  const [leaving, coming] = [one.tokens[0]!, another.tokens[0]!];
  const release = await holdOpen(own.database, (query) =>
    query('test', 'UPDATE devices.device SET user_id = $2 WHERE token = $1', [leaving, another.userId]),
  );
  // A wait would end with the statement timeout.
  await devices.register(one.userId, session, { token: coming }).finally(release);
  for (const { userId } of [one, another]) expect(await tokensOf(userId)).toHaveLength(maxDevices);
  expect(await tokensOf(one.userId)).toContain(coming);
});

test('feedback removes devices whose tokens are gone, and counts each unknown token once', async () => {
  const userId = someone();
  const [gone, delivered, both, stays] = [newToken(), newToken(), newToken(), newToken()];
  for (const token of [gone, delivered, both, stays]) await devices.register(userId, session, { token });
  const [first, second] = [newToken(), newToken()];
  const feedback = [
    { token: gone, gone: true },
    { token: gone, gone: true },
    { token: delivered, gone: false },
    { token: both, gone: true },
    { token: both, gone: false },
    { token: first, gone: true },
    { token: first, gone: true },
    { token: second, gone: false },
  ];
  expect(await devices.applyFeedback(feedback)).toEqual({ removed: 2, unknown: 2 });
  expect(await tokensOf(userId)).toEqual([stays, delivered]);
  expect(await devices.applyFeedback(feedback)).toEqual({ removed: 0, unknown: 4 });
  expect(await devices.applyFeedback([])).toEqual({ removed: 0, unknown: 0 });
});

test.each<[string, (tokens: string[], id: number) => Promise<unknown>]>([
  ['feedback', (tokens) => devices.applyFeedback(tokens.map((token) => ({ token, gone: true })))],
  ['the end of a session', (_, id) => devices.endSessions([id], 0)],
  ['the deletion of a user', (_, id) => devices.eraseUsers([id])],
])('%s locks devices in a fixed order, so that two calls cannot deadlock', async (_, remove) => {
  const id = someone();
  const hashOf = (token: string) => createHash('sha256').update(token).digest('hex');
  const tokens = Array.from({ length: 20 }, newToken).toSorted((a, b) => (hashOf(a) < hashOf(b) ? 1 : -1));
  for (const token of tokens) await devices.register(id, id, { token });
  const first = tokens.at(-1)!;
  const held = await holdOpen(own.database, (query) =>
    query('test', 'SELECT FROM devices.device WHERE token = $1 FOR UPDATE', [first]),
  );
  const removing = remove(tokens, id);
  await untilBlocked(own.database);
  const free = await own.sql(
    'SELECT FROM devices.device WHERE token = ANY ($1) AND token <> $2 FOR UPDATE SKIP LOCKED',
    tokens,
    first,
  );
  await held();
  expect(free).toHaveLength(19);
  await removing;
  expect(await tokensOf(id)).toEqual([]);
});

test('concurrent feedback of two senders about the same tokens removes each device once', async () => {
  for (let round = 0; round < 5; round += 1) {
    const tokens = Array.from({ length: 200 }, newToken);
    await Promise.all(tokens.map((token) => devices.register(someone(), session, { token })));
    const feedback = tokens.map((token) => ({ token, gone: true }));
    const more = Array.from({ length: 700 }, () => ({ token: newToken(), gone: true }));
    const counts = await Promise.all([
      devices.applyFeedback(feedback),
      devices.applyFeedback([...more, ...feedback.toReversed()]),
    ]);
    expect(counts[0]!.removed + counts[1]!.removed).toBe(200);
    expect(counts[0]!.unknown + counts[1]!.unknown).toBe(900);
  }
});

test('feedback about a token that is moving to another user removes the new device', async () => {
  const [before, after] = [someone(), someone()];
  const token = newToken();
  await devices.register(before, session, { token });
  const text = `UPDATE devices.device SET user_id = $2, id = nextval(pg_get_serial_sequence('devices.device', 'id'))
                WHERE token = $1`;
  const release = await holdOpen(own.database, (query) => query('test', text, [token, after]));
  const applied = devices.applyFeedback([{ token, gone: true }]);
  await untilBlocked(own.database);
  await release();
  expect(await applied).toEqual({ removed: 1, unknown: 0 });
  expect(await tokensOf(after)).toEqual([]);
});

test.each([
  [59, [{ stale: false }]],
  [61, [{ stale: true }]],
  [269, [{ stale: true }]],
  [271, []],
])('reports a device that was not seen for %i days as %j', async (days, expected) => {
  const userId = someone();
  const token = newToken();
  await devices.register(userId, session, { token });
  await age(token, days);
  await deleteUnseenDevices(own.database.query);
  expect(await devices.list(userId, undefined, 10)).toMatchObject(expected);
});

test('erases the devices of deleted users', async () => {
  const [deleted, other] = [someone(), someone()];
  for (const userId of [deleted, deleted, other])
    await devices.register(userId, session, { token: newToken() });
  await devices.eraseUsers([deleted, someone()]);
  expect(await tokensOf(deleted)).toEqual([]);
  expect(await tokensOf(other)).toHaveLength(1);
});
