import { expect, test } from '@jest/globals';
import { deviceName } from './device-name.ts';

test.each([
  ['curl/8.5.0', 'curl/8.5.0'],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
  ['', 'Unknown device'],
  // Node accepts these bytes in a header. A terminal may interpret the first one as the start of a control sequence.
  ['a\u009b31mred\u0085', 'a31mred'],
  ['x'.repeat(1_000), 'x'.repeat(100)],
])('names the device of %j', (userAgent, name) => {
  expect(deviceName(userAgent)).toBe(name);
});
