import { expect, jest, test } from '@jest/globals';
import argon2 from '@node-rs/argon2';
import bcrypt from '@node-rs/bcrypt';
import { createPasswords, isOutdated, isSupported } from './passwords.ts';

const passwords = createPasswords();
const bcryptHash = (version: '2a' | '2b' | '2y', cost = 4) =>
  bcrypt.hash('laravel-password', { cost, version });

test('a hash is argon2id with 19 MiB, 2 passes, 1 lane, and salted', async () => {
  const [first, second] = [await passwords.hash('the password'), await passwords.hash('the password')];
  expect(argon2.parseOptions(first)).toEqual({
    algorithm: 2,
    version: 1,
    memoryCost: 19_456,
    timeCost: 2,
    parallelism: 1,
    outputLen: 32,
    saltLen: 16,
  });
  expect(first).not.toBe(second);
  expect(await passwords.verify(first, 'the password')).toBe(true);
  expect(await passwords.verify(first, 'the passwore')).toBe(false);
});

test.each(['2a', '2b', '2y'] as const)('verifies bcrypt hashes of version %s', async (version) => {
  const hash = await bcryptHash(version);
  expect(hash.startsWith(`$${version}$`)).toBe(true);
  expect(await passwords.verify(hash, 'laravel-password')).toBe(true);
  expect(await passwords.verify(hash, 'laravel-passwort')).toBe(false);
});

test('verifies a hash that Laravel made', async () => {
  // The hash of "password" in Laravel's user factory.
  const hash = '$2y$10$92IXUNpkjO0rOQ5byMi.Ye4oKoEa3Ro9llC/.og/at2.uheWG/igi';
  expect(isSupported(hash)).toBe(true);
  expect(await passwords.verify(hash, 'password')).toBe(true);
});

test('does the work of a real check for a user without a password, and returns false', async () => {
  const verify = jest.spyOn(argon2, 'verify');
  const works = [];
  for (const stored of [await passwords.hash('the password'), undefined, null]) {
    verify.mockClear();
    expect(await passwords.verify(stored, 'a guess')).toBe(false);
    works.push(verify.mock.calls.map(([hash, given]) => [argon2.parseOptions(String(hash)), given]));
  }
  verify.mockRestore();
  expect(works[0]).toHaveLength(1);
  expect(works).toEqual([works[0], works[0], works[0]]);
});

test('queues calls over the limit and refuses too many', async () => {
  const hash = await passwords.hash('the password');
  const outcomes = await Promise.allSettled(
    Array.from({ length: 60 }, () => passwords.verify(hash, 'the password')),
  );
  expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(60 - 43);
});

test('reports hashes of another algorithm or cost as outdated', async () => {
  expect(isOutdated(await passwords.hash('x'))).toBe(false);
  expect(isOutdated(await bcryptHash('2y'))).toBe(true);
  expect(isOutdated(await argon2.hash('x', { memoryCost: 65_536, timeCost: 4 }))).toBe(true);
});

test('accepts imported hashes up to the cost limits', async () => {
  const salted = '$2y$12$Ptlhrz/rrKZbLJhcrJZpAunCY5F2MukkfDARoEXSO0LWO60PQcxUS';
  expect(isSupported(salted)).toBe(true);
  expect(isSupported(await bcryptHash('2a'))).toBe(true);
  expect(isSupported(await argon2.hash('x', { memoryCost: 65_536, timeCost: 4 }))).toBe(true);
});

test.each([
  '',
  'secret',
  '5f4dcc3b5aa765d61d8327deb882cf99',
  '$2y$13$Ptlhrz/rrKZbLJhcrJZpAunCY5F2MukkfDARoEXSO0LWO60PQcxUS',
  '$2y$03$Ptlhrz/rrKZbLJhcrJZpAunCY5F2MukkfDARoEXSO0LWO60PQcxUS',
  '$2y$10$Ptlhrz/rrKZbLJhcrJZpAunCY5F2MukkfDARoEXSO0LWO60PQcxU',
  '$2x$10$Ptlhrz/rrKZbLJhcrJZpAunCY5F2MukkfDARoEXSO0LWO60PQcxUS',
  '$argon2i$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
  '$argon2id$v=19$m=19456,t=2,p=1$AAAA',
  '$argon2id$v=19$m=65536,t=5,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
  '$argon2id$v=19$m=262144,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
])('does not accept the hash %j', (hash) => {
  expect(isSupported(hash)).toBe(false);
});

test('accepts a password however its accents are typed', async () => {
  const [composed, typed] = ['Zoë läuft weit', 'Zoë läuft weit'.normalize('NFD')];
  expect(composed).not.toBe(typed);
  for (const chosen of [composed, typed]) {
    const hash = await passwords.hash(chosen);
    expect(await argon2.verify(hash, composed)).toBe(true);
    for (const given of [composed, typed]) expect(await passwords.verify(hash, given)).toBe(true);
  }
});

test('verifies older and imported hashes with the password as typed', async () => {
  const [composed, typed] = ['Zoë läuft weit', 'Zoë läuft weit'.normalize('NFD')];
  const parameters = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 };
  const hashes = [
    await bcrypt.hash(typed, { cost: 4, version: '2y' }),
    await argon2.hash(typed, { memoryCost: 8_192, timeCost: 1 }),
    await argon2.hash(typed, parameters),
  ];
  for (const hash of hashes) {
    expect(await passwords.verify(hash, typed)).toBe(true);
    expect(await passwords.verify(hash, composed)).toBe(false);
  }
});
