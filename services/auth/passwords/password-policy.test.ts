import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createPasswordPolicy } from './password-policy.ts';

const policy = createPasswordPolicy(15);
const ann = { email: 'ann.archer@mail.example', name: 'Ann Zoë Archer' };
const complaint = (password: string) => policy.findProblem(password, ann);

test.each([
  ['eleven char', 11],
  ['', 0],
  ['x'.repeat(129), 129],
  // Each character has two UTF-16 units and four bytes, but the password has 14 characters.
  ['🜁🜂🜃🜄🜅🜆🜇🜈🜉🜊🜋🜌🜍🜎', 14],
  // Each letter is typed with separate dots. The composed password has 14 characters.
  ['Bürgermühle ¼!'.normalize('NFD'), 14],
])('refuses %j and names its length', async (password, length) => {
  expect(await complaint(password)).toBe(`Must have 15 to 128 characters; this has ${length}.`);
});

test.each([
  'wooden lantern drifts past nine',
  'wooden lantern drifts',
  'lower case only and nothing else',
  '838104756290174',
  'ЯблокоПадаетВверх',
  '🜁🜂🜃🜄🜅🜆🜇🜈🜉🜊🜋🜌🜍🜎🜏',
  `${'wooden lantern drifts past nine, '.repeat(4)}`.slice(0, 128).trimEnd(),
])('accepts %j whatever its kinds of characters', async (password) => {
  expect(await complaint(password)).toBeUndefined();
});

test.each([
  ['aaaaaaaaaaaaaaaaaaaa', 'Repeated characters'],
  ['passwordpassword', 'Repeated character patterns'],
  ['abcdefghijklmnopqrst', 'Common character sequences'],
  ['qwertyuiopasdfgh', 'similar to a commonly used'],
  ['zxcvbnm,./zxcvbnm', 'Repeated character patterns'],
  ['p@ssw0rd123456789', 'similar to a commonly used'],
  ['5up3rm4n5up3rm4n', 'Repeated character patterns'],
  ['Adm1n1$tr4t0r123', 'predictable letter substitutions'],
  ['ann.archer@mail.example', 'your name'],
  ['AnnZoeArcher1984', 'your name'],
  ['annzoëarcher2024', 'your name'],
  ['contentplatform', 'your name'],
  ['Content-Platform', 'your name'],
  ['ContentPlatform1', 'your name'],
  ['password password', 'Repeated character patterns'],
  ['password 1 password', 'similar to a commonly used'],
  ['content platform content', 'your name'],
  ['Ann Archer Ann Archer', 'your name'],
  ['ann.archer.2026!', 'your name'],
  ['пароль пароль пароль', 'Repeated character patterns'],
  ['ｐａｓｓｗｏｒｄｐａｓｓｗｏｒｄ', 'Repeated character patterns'],
])('refuses %j with the reason and advice', async (password, reason) => {
  const said = await complaint(password);
  expect(said).toMatch(/^Is too easy to guess\. .+\. Choose three or four unrelated words\./);
  expect(said).toContain(reason);
});

test('accepts the name of another user', async () => {
  const password = 'ann.archer@mail.example';
  expect(await policy.findProblem(password, { email: 'bob@other.example', name: 'Bob' })).toBeUndefined();
});

test('applies the minimum length of the setting', async () => {
  const short = createPasswordPolicy(8);
  expect(await short.findProblem('kXw9!vTqmZ', ann)).toBeUndefined();
  expect(await short.findProblem('kXw9!vT', ann)).toMatch(/^Must have 8 to 128 characters/);
});

test('refuses a listed password that is hard to guess otherwise, in both Unicode forms', async () => {
  const listed = 'Bürgermühle an der Ilm 4';
  const listing = createPasswordPolicy(15, { size: 1, includes: (password) => password === listed });
  for (const form of ['NFC', 'NFD'])
    expect(await listing.findProblem(listed.normalize(form), ann)).toMatch(
      /^Is too easy to guess\. It is on a list of common or leaked passwords\. Choose three or four unrelated words\./,
    );
  expect(await listing.findProblem(`${listed}5`, ann)).toBeUndefined();
});

test('returns a result for any text', async () => {
  const text = fc.string({ unit: 'binary', minLength: 15, maxLength: 128 });
  const words = fc
    .array(fc.constantFrom('__proto__', 'constructor', '%', ' ', '1', 'Ann', '\u0301', '@'), {
      minLength: 15,
    })
    .map((parts) => parts.join('').slice(0, 128));
  await fc.assert(
    fc.asyncProperty(fc.oneof(text, words), async (password) => {
      expect(['string', 'undefined']).toContain(typeof (await complaint(password)));
    }),
    { numRuns: 20 },
  );
});

test('checks only the first 32 characters, so that long passwords cost no more', async () => {
  const good = 'wooden lantern drifts past nine';
  expect(await complaint(`${'a'.repeat(32)}${good}`)).toContain('Repeated characters');
  expect(await complaint(`${good} ${'a'.repeat(90)}`)).toBeUndefined();
});

/** The passwords that take zxcvbn the longest time, at maximum length. */
test.each([
  ['l33t signs', '4@8({[<3690#!|1/;7+$5%2'],
  ['words in l33t', 'p@ssw0rdm0nkeydr4gonl3tm31n5un5h1ne'],
  ['digits and signs', '0@$!|13845$@|9!0'],
  ['repeats', '38$@01!47|38$@01!47|2'],
  ['dates', '1.1.1999'],
  ['brackets', '()/\\|_<>-{}[]'],
  ['words', 'thewasandforareonitasbeathis'],
])('checks %s in less than a second of CPU time', async (_, part) => {
  await complaint('loads the dictionaries');
  // CPU time of this thread, because other processes may keep this machine busy.
  const start = process.threadCpuUsage();
  await complaint(part.repeat(128).slice(0, 128));
  expect(process.threadCpuUsage(start).user / 1000).toBeLessThan(1_000);
});
