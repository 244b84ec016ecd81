import { afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { ConfigError, createLogger, type Database, runRetention } from '@content-platform/chassis';
import { useStarted } from '../../../test/support/use-started.ts';
import { until } from '../../../test/support/wait.ts';
import {
  replaceSigningKeys,
  rotateKeySecret,
  rotateSigningKey,
  type Rotation,
  signingKeyTimes,
} from './key-rotation.ts';
import { loadSecret } from './secret-store.ts';
import { maxTokenSeconds } from '../access-tokens.ts';
import { loadSigningKeys, type SigningKeys } from './signing-keys.ts';
import { keySecret, openAuthService } from '../testing/start-auth.ts';
import { retention } from '../retention.ts';
import { type AuthDatabase, createAuthDatabase } from '../stores.ts';

const nextSecret = `${keySecret}, and another`;
const times = { ...signingKeyTimes, reload: 0.05, coolDown: 0.05 };
const away = expect.objectContaining({ status: 503 }) as object;

const own = useStarted(openAuthService);
let database: Database;
let stores: AuthDatabase;
let log: string[];
const loaded: SigningKeys[] = [];

beforeAll(async () => {
  ({ database, log } = own);
  stores = createAuthDatabase(database);
  await database.query('keep', 'CREATE TABLE auth.kept_key AS TABLE auth.signing_key');
});
/** Ends the processes and restores the first key alone: a new key takes 0.2 s of CPU. */
afterEach(async () => {
  await Promise.all(loaded.splice(0).map((keys) => keys.close()));
  await database.query('empty', 'TRUNCATE auth.signing_key, auth.secret, audit.entry, audit.unlinked');
  await database.query('restore', 'INSERT INTO auth.signing_key TABLE auth.kept_key');
  log.length = 0;
});

/** The keys that one of several processes has loaded. */
async function load(secret = keySecret, from = database, sooner = times): Promise<SigningKeys> {
  const keys = await loadSigningKeys(createAuthDatabase(from), secret, own.logger, sooner);
  loaded.push(keys);
  return keys;
}

/** Simulates that this much time has passed since the keys were created. */
async function pass(seconds: number): Promise<void> {
  const text = 'UPDATE auth.signing_key SET signs_from = signs_from - make_interval(secs => $1)';
  await database.query('pass', text, [seconds]);
}

function counting(): { from: Database; readings: () => number } {
  let readings = 0;
  const query: Database['query'] = (operation, ...rest) => {
    readings += operation === 'list_signing_keys' ? 1 : 0;
    return database.query(operation, ...rest);
  };
  return { from: { ...database, query }, readings: () => readings };
}

async function rotate(secret = keySecret): Promise<Rotation> {
  return (await rotateSigningKey(stores, secret)) as Rotation;
}

const published = (keys: SigningKeys) => keys.public.map(({ kid }) => kid);

test('publishes a new key immediately, signs with it later, and deletes the old one when its tokens have expired', async () => {
  const processes = [await load(), await load()];
  const first = processes[0]!.current.kid;
  const { kid, replaced, signsFrom, publishedUntil } = await rotate();
  expect(replaced).toBe(first);
  const { ahead } = signingKeyTimes;
  expect(Math.abs(signsFrom.getTime() - Date.now() - ahead * 1000)).toBeLessThan(30_000);
  expect(publishedUntil.getTime() - signsFrom.getTime()).toBe(maxTokenSeconds * 1000);
  for (const keys of processes) {
    await until('it is published', () => published(keys).includes(kid));
    expect(keys.current.kid).toBe(first);
    expect(await keys.get(kid)).toBeDefined();
  }
  await pass(ahead);
  for (const keys of processes) {
    await until('it signs', () => keys.current.kid === kid);
    expect(published(keys)).toEqual([kid, first]);
    expect(await keys.get(first)).toBeDefined();
  }
  await stores.signingKeys.deleteExpired();
  await pass(maxTokenSeconds);
  for (const keys of processes) {
    await until('the old one is gone', () => published(keys).length === 1);
    expect(keys.current.kid).toBe(kid);
    expect(await keys.get(first)).toBeUndefined();
  }
  const kids = 'SELECT kid FROM auth.signing_key';
  expect((await database.query('kids', kids)).rowCount).toBe(2);
  await runRetention(database.query, retention, createLogger('auth', 'error'), new AbortController().signal);
  expect((await database.query('kids', kids)).rows).toEqual([{ kid }]);
});

test('a process switches keys on time, not at the next reading', async () => {
  const keys = await load(keySecret, database, { ...times, reload: 1_000 });
  const { kid } = await rotate();
  await pass(signingKeyTimes.ahead - 1);
  await until('it has heard of it', () => keys.get(kid));
  await until('it signs', () => keys.current.kid === kid);
});

test('publishes a key before verifiers refresh their copies, and keeps it longer than its tokens live', () => {
  expect(signingKeyTimes.ahead).toBeGreaterThan(300 + signingKeyTimes.reload);
  expect(maxTokenSeconds).toBeGreaterThan(900);
});

test('creates no second key while one waits, even for concurrent calls', async () => {
  await load();
  const made = await Promise.all(Array.from({ length: 5 }, () => rotateSigningKey(stores, keySecret)));
  const rotations = made.filter((one): one is Rotation => 'kid' in one!);
  expect(rotations).toHaveLength(1);
  const [{ kid, signsFrom }] = rotations as [Rotation];
  const waiting = made.filter((one) => !rotations.includes(one as Rotation)) as { signsFrom: Date }[];
  for (const one of waiting) {
    expect(one).toMatchObject({ waiting: kid });
    expect(Math.abs(one.signsFrom.getTime() - signsFrom.getTime())).toBeLessThan(1_000);
  }
  const audited = `SELECT actor, details FROM auth.audit WHERE event = 'signing_key_rotated'`;
  expect((await database.query('audit', audited)).rows).toEqual([
    { actor: 'command', details: { kid, signs_from: signsFrom.toISOString() } },
  ]);
});

test('creates no key with another secret, and signs although the clock was set back', async () => {
  await expect(rotate(nextSecret)).rejects.toThrow(ConfigError);
  await expect(replaceSigningKeys(stores, nextSecret)).rejects.toThrow(ConfigError);
  const keys = await pass(-3_600).then(() => load());
  expect(keys.public).toEqual([expect.objectContaining({ kid: keys.current.kid })]);
});

test('a process that cannot read the keys continues with its loaded keys, logs it once, and recovers', async () => {
  const { from, readings } = counting();
  const keys = await load(keySecret, from);
  const { kid } = keys.current;
  await database.query('away', 'ALTER TABLE auth.signing_key RENAME TO away');
  await until('it says so', () => log.length > 0);
  // An unknown kid is not reported as missing while the keys cannot be read.
  for (let tries = 0; tries < 3; tries += 1) await expect(keys.get('unknown')).rejects.toEqual(away);
  expect(keys.current.kid).toBe(kid);
  expect(await keys.get(kid)).toBeDefined();
  const before = readings();
  await until('it has tried again', () => readings() > before + 3);
  expect(log).toEqual([expect.stringContaining('signing keys not read')]);
  await database.query('back', 'ALTER TABLE auth.away RENAME TO signing_key');
  const { kid: next } = await rotate();
  await until('it has heard of the new one', () => published(keys).includes(next));
  expect(await keys.get('unknown')).toBeUndefined();
});

test('reads the keys again for an unknown kid, at most once in the cool-down', async () => {
  const { from, readings } = counting();
  const keys = await load(keySecret, from, { ...times, reload: 1_000, coolDown: 60 });
  const { kid } = await rotate();
  // The keys were read recently, so an unknown kid causes no second read.
  expect(await keys.get(kid)).toBeUndefined();
  const restore = jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 61_000);
  expect(await keys.get(kid)).toBeDefined();
  for (let tries = 0; tries < 50; tries += 1) await keys.get(`invented-${tries}`);
  restore.mockRestore();
  expect(readings()).toBe(2);
});

test('rotates nothing without a key', async () => {
  await database.query('empty', 'TRUNCATE auth.signing_key');
  expect(await rotateSigningKey(stores, keySecret)).toBeUndefined();
  expect(await rotateKeySecret(stores, keySecret, nextSecret)).toBe(0);
});

test('rotate-key-secret keeps the keys and the secret of refresh tokens, sealed with the new secret', async () => {
  const before = await load();
  const refreshSecret = await loadSecret(stores.secrets, 'refresh_token', keySecret);
  expect(await rotateKeySecret(stores, keySecret, nextSecret)).toBe(2);
  const after = await load(nextSecret);
  expect(after.current.kid).toBe(before.current.kid);
  expect(after.current.privateKey.equals(before.current.privateKey)).toBe(true);
  expect(await loadSecret(stores.secrets, 'refresh_token', nextSecret)).toEqual(refreshSecret);
  for (const loading of [load(), loadSecret(stores.secrets, 'refresh_token', keySecret)])
    await expect(loading).rejects.toThrow(ConfigError);
  // Simulates a command whose output was lost.
  expect(await rotateKeySecret(stores, keySecret, nextSecret)).toBe('done');
  const audited = `SELECT actor, details FROM auth.audit WHERE event = 'key_secret_rotated'`;
  expect((await database.query('audit', audited)).rows).toEqual([
    { actor: 'command', details: { sealed: 2 } },
  ]);
});

const everySealed = `SELECT sealed FROM auth.secret UNION ALL SELECT sealed_private_key FROM auth.signing_key`;

const wrong = 'a secret that opens nothing at all here';
test.each([
  ['a wrong old secret', wrong, 'SELECT'],
  [
    'a secret that is sealed under another one',
    keySecret,
    `INSERT INTO auth.secret VALUES ('other', sha512('nonsense'))`,
  ],
])('%s changes nothing', async (_, current, statement) => {
  await load();
  await loadSecret(stores.secrets, 'refresh_token', keySecret);
  await database.query('spoil', statement);
  const before = (await database.query('sealed', everySealed)).rows;
  const failure: unknown = await rotateKeySecret(stores, current, nextSecret).catch((e: unknown) => e);
  expect(failure).toBeInstanceOf(ConfigError);
  expect((failure as Error).message).toMatch(/^AUTH_KEY_SECRET does not decrypt .+; nothing was changed$/);
  expect((await database.query('sealed', everySealed)).rows).toEqual(before);
});

test('a process with the old secret signs with its loaded keys, and logs once that it must be restarted', async () => {
  const keys = await load();
  const { kid } = keys.current;
  await rotateKeySecret(stores, keySecret, nextSecret);
  await until('it says so', () => log.length > 0);
  const { kid: next } = await rotate(nextSecret);
  await pass(signingKeyTimes.ahead);
  expect((await load(nextSecret)).current.kid).toBe(next);
  await until('it publishes the new one', () => published(keys).length === 2);
  expect(keys.current.kid).toBe(kid);
  // Verifiers would refuse tokens that this process signs after that time.
  await pass(maxTokenSeconds);
  await until('its own one is gone', () => published(keys).length === 1);
  expect(() => keys.current).toThrow('Access tokens cannot be issued now. Retry later.');
  expect(log).toEqual([expect.stringContaining('restarted with the new secret')]);
});
