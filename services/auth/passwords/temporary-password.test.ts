import { expect, test } from '@jest/globals';
import { createPasswordPolicy } from './password-policy.ts';
import type { Passwords } from './passwords.ts';
import { makeRandomCode, matchPassword } from './temporary-password.ts';

test('makes codes of 80 random bits from characters that are not mistaken for each other', () => {
  const made = Array.from({ length: 500 }, makeRandomCode);
  for (const password of made) expect(password).toMatch(/^([2-9a-km-np-z]{4}-){3}[2-9a-km-np-z]{4}$/);
  expect(new Set(made).size).toBe(500);
  // Of 8,000 characters, each of the 32 occurs about 250 times.
  const counts = Map.groupBy(made.join('').replaceAll('-', ''), (character) => character);
  expect(counts.size).toBe(32);
  for (const { length } of counts.values()) expect(length).toBeGreaterThan(150);
});

test('makes codes that the password policy accepts', async () => {
  const policy = createPasswordPolicy(15);
  const ann = { email: 'ann@example.com', name: 'Ann' };
  for (let round = 0; round < 5; round += 1)
    expect(await policy.findProblem(makeRandomCode(), ann)).toBeUndefined();
});

/** Records the hashed passwords. A password matches a hash that equals the password. */
function noting() {
  const hashed: string[] = [];
  const verify: Passwords['verify'] = (hash, password) => {
    hashed.push(password);
    return Promise.resolve(hash === password);
  };
  return { hashed, passwords: { verify } as Passwords };
}

const given = `${makeRandomCode().slice(0, -1)}i`;
const people = {
  nobody: undefined,
  'without any': { passwordHash: null, tempPasswordHash: null },
  'with their own': { passwordHash: 'own', tempPasswordHash: null },
  'with both': { passwordHash: 'own', tempPasswordHash: makeRandomCode() },
};

test.each(['a wrong password', given])(
  'does the same work for %j with and without a temporary password',
  async (typed) => {
    const works = await Promise.all(
      Object.values(people).map(async (person) => {
        const { passwords, hashed } = noting();
        expect(await matchPassword(passwords, person, typed)).toBeUndefined();
        return hashed;
      }),
    );
    for (const work of works) expect(work).toEqual(works[0]);
    // Only a text that looks like a temporary password needs a second hash.
    expect(works[0]).toHaveLength(typed === given ? 2 : 1);
  },
);

test('returns which password was typed', async () => {
  const { passwords } = noting();
  const person = { passwordHash: 'own', tempPasswordHash: given };
  expect(await matchPassword(passwords, person, 'own')).toBe('own');
  expect(await matchPassword(passwords, person, given)).toBe('temporary');
  expect(await matchPassword(passwords, { ...person, passwordHash: null }, given)).toBe('temporary');
  const mixed = ` ${given.replace('-', '').replace('-', ' ').replace('-', '－').replace('i', 'ｉ')} `;
  for (const typed of [given.toUpperCase(), given.toLocaleUpperCase('tr'), mixed])
    expect(await matchPassword(passwords, person, typed)).toBe('temporary');
  expect(await matchPassword(passwords, person, given.slice(1))).toBeUndefined();
});
