import { describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { cleanName, disposition, webpName } from './file-name.ts';

describe('cleanName', () => {
  test.each([
    ['\u0915\u094d\u200d\u0937 👩\u200d👧.jpg', '\u0915\u094d\u200d\u0937 👩\u200d👧.jpg'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\Users\\me\\photo.jpg', 'photo.jpg'],
    ['a\u202egpj.exe', 'agpj.exe'],
    ['zero\u200bwidth\u0000\n\u2028.jpg', 'zerowidth.jpg'],
    ['  two   words .jpg ', 'two words .jpg'],
    ['...', 'file'],
    ['.htaccess', 'htaccess'],
    ['dir/', 'file'],
    ['\u200d', 'file'],
    [undefined, 'file'],
    ['half \ud83d.jpg', 'half \ufffd.jpg'],
    ['Fo\u0308hr.jpg', 'Föhr.jpg'],
    [`${'x'.repeat(500)}.jpeg`, `${'x'.repeat(145)}.jpeg`],
    ['💥'.repeat(200), '💥'.repeat(150)],
    [`a.${'b'.repeat(500)}`, `a.${'b'.repeat(148)}`],
  ])('cleans %j', (given, name) => {
    expect(cleanName(given)).toBe(name);
  });

  test('the time grows with the length of the name, not with its square', () => {
    const program = `import { cleanName } from ${JSON.stringify(new URL('file-name.ts', import.meta.url).href)};
      process.stdout.write(cleanName('a' + '.'.repeat(1_000_000) + 'b'));`;
    // An implementation with quadratic cost would take a quarter of an hour.
    const output = execFileSync('node', ['--input-type=module', '--eval', program], { timeout: 60_000 });
    expect(String(output)).toBe(`a${'.'.repeat(148)}b`);
  }, 70_000);
});

test.each([
  ['photo.jpg', `inline; filename="photo.jpg"; filename*=UTF-8''photo.jpg`],
  ['Föhr "1".jpg', `inline; filename="F_hr _1_.jpg"; filename*=UTF-8''F%C3%B6hr%20%221%22.jpg`],
  [`it's (1)*.jpg`, `inline; filename="it's (1)*.jpg"; filename*=UTF-8''it%27s%20%281%29%2A.jpg`],
  ['50%\\.jpg', `inline; filename="50__.jpg"; filename*=UTF-8''50%25%5C.jpg`],
])('Content-Disposition of %s', (name, header) => {
  expect(disposition('inline', name)).toBe(header);
});

test.each([
  ['photo.jpg', 'photo.webp'],
  ['photo', 'photo.webp'],
  ['photo.of.me.PNG', 'photo.of.me.webp'],
  ['v1. a longer ending', 'v1. a longer ending.webp'],
])('%s is served as %s', (name, served) => {
  expect(webpName(name)).toBe(served);
});
