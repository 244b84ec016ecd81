import { beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createPasswordPolicy } from './password-policy.ts';

const policy = createPasswordPolicy(15);
const ann = { email: 'ann.archer@mail.example', name: 'Ann Zoë Archer' };
const complaint = (password: string) => policy.complaint(password, ann);

test.each([
  ['eleven char', 11],
  ['', 0],
  ['x'.repeat(129), 129],
  // Two UTF-16 units and four bytes each: 14 characters all the same.
  ['🜁🜂🜃🜄🜅🜆🜇🜈🜉🜊🜋🜌🜍🜎', 14],
  // Typed as a letter and its dots: 14 characters once composed.
  ['Bürgermühle ¼!'.normalize('NFD'), 14],
])('the length of %j is refused and told', (password, length) => {
  expect(complaint(password)).toBe(`Must have 15 to 128 characters; this has ${length}.`);
});

test.each([
  'wooden lantern drifts past nine',
  'wooden lantern drifts',
  'lower case only and nothing else',
  '838104756290174',
  'ЯблокоПадаетВверх',
  '🜁🜂🜃🜄🜅🜆🜇🜈🜉🜊🜋🜌🜍🜎🜏',
  `${'wooden lantern drifts past nine, '.repeat(4)}`.slice(0, 128).trimEnd(),
])('%j is taken: length decides, not what it is made of', (password) => {
  expect(complaint(password)).toBeUndefined();
});

test.each([
  ['aaaaaaaaaaaaaaaaaaaa', 'it repeats a character'],
  ['passwordpassword', 'it repeats itself'],
  ['abcdefghijklmnopqrst', 'it goes on as everybody would'],
  ['qwertyuiopasdfgh', 'common'],
  ['zxcvbnm,./zxcvbnm', 'it '],
  ['p@ssw0rd123456789', 'common'],
  ['5up3rm4n5up3rm4n', 'it repeats itself'],
  ['Adm1n1$tr4t0r123', 'signs in the place of letters'],
  ['ann.archer@mail.example', 'it has your name'],
  ['AnnZoeArcher1984', 'it has your name'],
  ['annzoëarcher2024', 'it has your name'],
  ['contentplatform', 'it has your name'],
  ['Content-Platform', 'it has your name'],
  ['ContentPlatform1', 'it has your name'],
  ['password password', 'it repeats itself'],
  ['password 1 password', 'common'],
  ['admin admin admin', 'it repeats itself'],
  ['iloveyou iloveyou', 'it repeats itself'],
  ['content platform content', 'it has your name'],
  ['Ann Archer Ann Archer', 'it '],
  ['ann.archer.2026!', 'it has your name'],
  ['пароль пароль пароль', 'it repeats itself'],
  ['ｐａｓｓｗｏｒｄｐａｓｓｗｏｒｄ', 'it repeats itself'],
])('%j is soon guessed: it says why, and what is better', (password, reason) => {
  const said = complaint(password);
  expect(said).toMatch(/^Is too easy to guess: .+\. Three or four words /);
  expect(said).toContain(reason);
});

test("what is another's name is a word like others", () => {
  const password = 'ann.archer@mail.example';
  expect(policy.complaint(password, { email: 'bob@other.example', name: 'Bob' })).toBeUndefined();
});

test('the least length is a setting', () => {
  const short = createPasswordPolicy(8);
  expect(short.complaint('kXw9!vTqmZ', ann)).toBeUndefined();
  expect(short.complaint('kXw9!vT', ann)).toMatch(/^Must have 8 to 128 characters/);
});

test('any text gets an answer', () => {
  const text = fc.string({ unit: 'binary', minLength: 15, maxLength: 128 });
  const words = fc
    .array(fc.constantFrom('__proto__', 'constructor', '%', ' ', '1', 'Ann', '\u0301', '@'), {
      minLength: 15,
    })
    .map((parts) => parts.join('').slice(0, 128));
  fc.assert(
    fc.property(fc.oneof(text, words), (password) => {
      expect(['string', 'undefined']).toContain(typeof complaint(password));
    }),
    { numRuns: 20 },
  );
});

describe('the work', () => {
  /** Those that take zxcvbn the longest, at full length. */
  const costly = {
    'l33t signs': '4@8({[<3690#!|1/;7+$5%2',
    'words in l33t': 'p@ssw0rdm0nkeydr4gonl3tm31n5un5h1ne',
    digits: '838104756290174662930158',
    'digits and signs': '0@$!|13845$@|9!0',
    repeats: '38$@01!47|38$@01!47|2',
    'one digit': '1',
    dates: '1.1.1999',
    brackets: '()/\\|_<>-{}[]',
    years: '1999200020012002',
    names: 'annzoearcherannarcher',
    words: 'thewasandforareonitasbeathis',
    'any characters': 'kX9v#Tq2!mZ7bW',
  };
  /** Processor time of this thread in ms: others may keep this machine busy. */
  function spent(password: string): number {
    const start = process.threadCpuUsage();
    complaint(password);
    return process.threadCpuUsage(start).user / 1000;
  }
  let longest: number;

  beforeAll(() => {
    const passwords = Object.values(costly).map((part) => part.repeat(128).slice(0, 128));
    longest = Math.max(
      ...passwords.map((password) => Math.min(spent(password), spent(password), spent(password))),
    );
  });

  test('of the costliest password is bearable: without limits it is seconds', () => {
    expect(longest).toBeLessThan(150);
  });
});
