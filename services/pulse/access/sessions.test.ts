import { beforeEach, expect, test } from '@jest/globals';
import type { Tokens } from './auth-client.ts';
import { HttpError } from '@content-platform/chassis';
import { userCaller } from '../../../test/support/user-caller.ts';
import { createCookie } from './cookie.ts';
import { createSessions, type Sessions } from './sessions.ts';
import { createViewers } from './viewers.ts';

const minute = 60_000;
const from = { 'X-Forwarded-For': '10.1.2.3' };

let now: number;
/** The refresh tokens that auth was asked to renew. */
let renewed: string[];
let answer: () => Promise<Tokens | undefined>;
let sessions: Sessions;

const tokens = (n: number): Tokens => ({
  accessToken: `access ${n}`,
  refreshToken: `refresh ${n}`,
  lifetimeMs: 15 * minute,
});

beforeEach(() => {
  now = 1_000_000;
  renewed = [];
  answer = async () => tokens(renewed.length + 1);
  const renew = async (refreshToken: string) => {
    renewed.push(refreshToken);
    return answer();
  };
  sessions = createSessions({ renew }, () => now);
});

test('reuses a valid token and renews it once for concurrent requests', async () => {
  const value = sessions.open(tokens(1));
  expect(value).toMatch(/^[\w-]{43}$/);
  expect(await sessions.tokenOf(value, from)).toBe('access 1');
  now += 14 * minute;
  const all = [1, 2, 3].map(() => sessions.tokenOf(value, from));
  expect(await Promise.all(all)).toEqual(['access 2', 'access 2', 'access 2']);
  now += 14 * minute;
  expect(await sessions.tokenOf(value, from)).toBe('access 3');
  expect(await sessions.tokenOf(value, from, 'access 3')).toBe('access 4');
  expect(renewed).toEqual(['refresh 1', 'refresh 2', 'refresh 3']);
});

test('ends a session after 12 hours, even if it was renewed', async () => {
  const value = sessions.open(tokens(1));
  for (let hour = 1; hour < 12; hour += 1) {
    now += 60 * minute;
    expect(await sessions.tokenOf(value, from)).toBeDefined();
  }
  now += 60 * minute;
  expect(await sessions.tokenOf(value, from)).toBeUndefined();
});

test('ends a session when auth reports its end, but not while auth is unavailable', async () => {
  const value = sessions.open(tokens(1));
  now += 15 * minute;
  answer = () => Promise.reject(new Error('unavailable'));
  await expect(sessions.tokenOf(value, from)).rejects.toThrow('unavailable');
  answer = async () => undefined;
  expect(await sessions.tokenOf(value, from)).toBeUndefined();
  answer = async () => tokens(9);
  expect(await sessions.tokenOf(value, from)).toBeUndefined();
});

test('uses the old token until it expires while auth is unavailable', async () => {
  const value = sessions.open(tokens(1));
  answer = () => Promise.reject(new Error('unavailable'));
  now += 15 * minute - 1;
  expect(await sessions.tokenOf(value, from)).toBe('access 1');
  now += 1;
  await expect(sessions.tokenOf(value, from)).rejects.toThrow('unavailable');
});

test('finds neither an ended session nor an unknown one', async () => {
  const value = sessions.open(tokens(1));
  sessions.end(value);
  expect(await sessions.tokenOf(value, from)).toBeUndefined();
  expect(await sessions.tokenOf('__proto__', from)).toBeUndefined();
});

test('a viewer whose access token is refused stays signed in with a new one', async () => {
  const verify = async (token: string) => {
    if (token === 'access 1') throw new HttpError('invalid_token', 'Its key was replaced.');
    return userCaller(1, 'pulse:view');
  };
  const cookie = `pulse=${sessions.open(tokens(1))}`;
  const header = (name: string) => (name === 'cookie' ? cookie : undefined);
  const viewerOf = createViewers({ verify }, sessions, createCookie('http://127.0.0.1'));
  expect((await viewerOf({ header, address: '10.1.2.3' })).token).toBe('access 2');
});

test('replaces the oldest of more than 1,000 sessions', async () => {
  const values = Array.from({ length: 1_001 }, (_, n) => sessions.open(tokens(n)));
  expect(await sessions.tokenOf(values[0]!, from)).toBeUndefined();
  expect(await sessions.tokenOf(values[1]!, from)).toBe('access 1');
  expect(await sessions.tokenOf(values[1_000]!, from)).toBe('access 1000');
});
