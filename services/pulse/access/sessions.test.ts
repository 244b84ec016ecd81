import { beforeEach, expect, test } from '@jest/globals';
import type { Tokens } from './auth-client.ts';
import { createSessions, type Sessions } from './sessions.ts';

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
  lifetime: 15 * minute,
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

test('a token is used while it is good, and renewed once for all who ask at once', async () => {
  const value = sessions.open(tokens(1));
  expect(value).toMatch(/^[\w-]{43}$/);
  expect(await sessions.tokenOf(value, from)).toBe('access 1');
  now += 14 * minute;
  const all = [1, 2, 3].map(() => sessions.tokenOf(value, from));
  expect(await Promise.all(all)).toEqual(['access 2', 'access 2', 'access 2']);
  now += 14 * minute;
  expect(await sessions.tokenOf(value, from)).toBe('access 3');
  expect(renewed).toEqual(['refresh 1', 'refresh 2']);
});

test('after 12 hours it is over, however often it was renewed', async () => {
  const value = sessions.open(tokens(1));
  for (let hour = 1; hour < 12; hour += 1) {
    now += 60 * minute;
    expect(await sessions.tokenOf(value, from)).toBeDefined();
  }
  now += 60 * minute;
  expect(await sessions.tokenOf(value, from)).toBeUndefined();
});

test('it is over when auth says so, but not while auth is away', async () => {
  const value = sessions.open(tokens(1));
  now += 15 * minute;
  answer = () => Promise.reject(new Error('away'));
  await expect(sessions.tokenOf(value, from)).rejects.toThrow('away');
  answer = async () => undefined;
  expect(await sessions.tokenOf(value, from)).toBeUndefined();
  answer = async () => tokens(9);
  expect(await sessions.tokenOf(value, from)).toBeUndefined();
});

test('while auth is away the old token is used to its end', async () => {
  const value = sessions.open(tokens(1));
  answer = () => Promise.reject(new Error('away'));
  now += 15 * minute - 1;
  expect(await sessions.tokenOf(value, from)).toBe('access 1');
  now += 1;
  await expect(sessions.tokenOf(value, from)).rejects.toThrow('away');
});

test('a session that was ended is not there; nor is one that never was', async () => {
  const value = sessions.open(tokens(1));
  sessions.end(value);
  expect(await sessions.tokenOf(value, from)).toBeUndefined();
  expect(await sessions.tokenOf('__proto__', from)).toBeUndefined();
});

test('of more than 1,000 the oldest goes', async () => {
  const values = Array.from({ length: 1_001 }, (_, n) => sessions.open(tokens(n)));
  expect(await sessions.tokenOf(values[0]!, from)).toBeUndefined();
  expect(await sessions.tokenOf(values[1]!, from)).toBe('access 1');
  expect(await sessions.tokenOf(values[1_000]!, from)).toBe('access 1000');
});
