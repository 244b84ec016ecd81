import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { hash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '@content-platform/chassis';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { readBlocklist } from './blocklist.ts';

const folder = temporaryFolder();
const file = join(folder, 'list');

function listOf(text: string | Uint8Array) {
  writeFileSync(file, text);
  return readBlocklist(file);
}

function expectRefusal(path: string, message: RegExp): void {
  const read = () => readBlocklist(path);
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(message);
}
const sha1 = (password: string) => hash('sha1', password);

test.each([
  ['a password', 'tall green bicycle'],
  ['a SHA-1', sha1('tall green bicycle')],
  ['a SHA-1 with its count', `${sha1('tall green bicycle').toUpperCase()}:3730471`],
  ['Windows line ends', 'first\r\ntall green bicycle\r\n'],
  ['a byte order mark', '\uFEFFtall green bicycle\nlast'],
  ['empty lines', '\n\ntall green bicycle\n\n'],
])('finds a password in a file with %s', (_, text) => {
  const list = listOf(text);
  expect(list.includes('tall green bicycle')).toBe(true);
  expect(list.includes('tall green bicycles')).toBe(false);
});

test('compares the form in which passwords are stored', () => {
  expect(listOf('Bürgermühle'.normalize('NFD')).includes('Bürgermühle'.normalize('NFC'))).toBe(true);
});

test('finds exactly the passwords of any list', () => {
  const password = fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !/\p{Cc}/u.test(text));
  fc.assert(
    fc.property(
      fc.uniqueArray(password, { maxLength: 50, selector: (text) => text.normalize('NFC') }),
      (all) => {
        const half = all.slice(0, all.length / 2);
        const list = listOf(
          half.map((one, index) => (index % 2 ? sha1(one.normalize('NFC')) : one)).join('\n'),
        );
        expect(all.map((one) => list.includes(one))).toEqual(all.map((_, index) => index < half.length));
      },
    ),
    { numRuns: 20 },
  );
});

test('finds every password of a list that is read in many pieces', () => {
  const many = Array.from({ length: 20_000 }, (_, index) => `password ${index}`);
  const list = listOf(many.join('\n'));
  expect(many.filter((password) => !list.includes(password))).toEqual([]);
});

test('reads a million lines', () => {
  const digests = randomBytes(20 * 999_999)
    .toString('hex')
    .replaceAll(/.{40}/g, '$&\n');
  const list = listOf(`${digests}tall green bicycle`);
  expect([list.size, list.includes('tall green bicycle')]).toEqual([1_000_000, true]);
});

test.each([
  ['too many passwords', Buffer.alloc(41 * 1_000_001, `${sha1('x')}\n`), /has more than 1000000 passwords$/],
  ['a file over 64 MB', Buffer.alloc(64 * 1_048_576 + 1, 'x\n'), /is larger than 64 MB$/],
  [
    'a long line',
    `first\n${'x'.repeat(1_025)}\n`,
    /^PASSWORD_BLOCKLIST_FILE: line 2 of .+ is longer than 1024/,
  ],
  ['no lines at all', Buffer.alloc(10_000_000, 'x'), /line 1 of .+ is longer than 1024 bytes$/],
  ['Latin-1', Buffer.from('first\nM\u00fchle', 'latin1'), /line 2 of .+ is not UTF-8$/],
  ['a control character', 'tall\tgreen', /line 1 of .+ contains a control character$/],
  ['a binary file', Buffer.from([0, 1, 2]), /line 1 of .+ contains a control character$/],
])('refuses %s with one line', (_, text, message) => {
  writeFileSync(file, text);
  expectRefusal(file, message);
});

test.each(['missing', '.'])('refuses the path %s with one line', (path) =>
  expectRefusal(join(folder, path), /^PASSWORD_BLOCKLIST_FILE: E[A-Z]+: .+$/),
);
