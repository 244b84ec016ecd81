import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createPublicKey, sign, verify } from 'node:crypto';
import { ConfigError } from '@content-platform/chassis';
import { type KeyDatabase, openKeyDatabase } from './testing.ts';
import { keySecret } from '../testing.ts';

let own: KeyDatabase;

beforeAll(async () => {
  own = await openKeyDatabase();
});
afterAll(() => own.drop());

test('processes that start at once end up with one key', async () => {
  const all = await Promise.all(Array.from({ length: 5 }, () => own.load()));
  expect(new Set(all.map(({ current }) => current.kid)).size).toBe(1);
  const [first] = all;
  expect(first!.public).toHaveLength(1);
  const signature = sign('sha256', Buffer.from('text'), first!.current.privateKey);
  const key = createPublicKey({ key: { ...all[4]!.public[0]! }, format: 'jwk' });
  expect(verify('sha256', Buffer.from('text'), key, signature)).toBe(true);
});

test('a later start finds the same key', async () => {
  const [first, second] = [await own.load(), await own.load()];
  expect(second.current.kid).toBe(first.current.kid);
  expect(await second.get(first.current.kid)).toBeDefined();
  expect(await second.get('another')).toBeUndefined();
});

test('the private key does not lie open in the database', async () => {
  const { current } = await own.load();
  const { rows } = await own.database.query<Record<string, unknown>>('all', 'SELECT * FROM auth.signing_key');
  const sealed = rows[0]!['sealed_private_key'] as Buffer;
  const { d } = current.privateKey.export({ format: 'jwk' });
  const exponent = Buffer.from(d!, 'base64url');
  expect(sealed.includes(exponent)).toBe(false);
  expect(sealed.length).toBeGreaterThan(1000);
  expect(JSON.stringify(rows[0]!['public_jwk'])).not.toContain(d!);
});

test('another AUTH_KEY_SECRET is a mistake in the configuration', async () => {
  const failure: unknown = await own.load(`${keySecret}!`).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ConfigError);
  expect((failure as Error).message).toMatch(/^AUTH_KEY_SECRET does not open/);
});
