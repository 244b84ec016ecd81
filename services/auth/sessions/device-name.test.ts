import { expect, test } from '@jest/globals';
import { deviceName } from './device-name.ts';

test.each([
  ['%E3%82%A2/3.2 100% Pixel von M\u00c3\u00bcller', 'ア/3.2 100% Pixel von Müller'],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
  ['', 'Unknown device'],
  // UTF-8 of U+009B, which a terminal may interpret as the start of a control sequence, and of U+0085.
  ['a\u00c2\u009b31mred\u00c2\u0085', 'a31mred'],
  ['x'.repeat(1_000), 'x'.repeat(100)],
])('names the device of %j', (userAgent, name) => {
  expect(deviceName(userAgent)).toBe(name);
});
