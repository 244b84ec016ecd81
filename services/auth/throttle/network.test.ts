import { expect, test } from '@jest/globals';
import { networkOf } from './login-throttle.ts';

test.each([
  ['2001:DB8:0:1:0:ffff::2', '2001:db8:0::/48'],
  ['::ffff:1.2.3.4', '1.2.3.4'],
  ['1.2.3.4', '1.2.3.4'],
])('the site of %s is %s', (address, expected) => {
  expect(networkOf(address, 48)).toBe(expected);
});

test.each([
  ['1.2.3.4', '1.2.3.4'],
  ['::ffff:1.2.3.4', '1.2.3.4'],
  ['::FFFF:102:304', '1.2.3.4'],
  ['0:0:0:0:0:ffff:1.2.3.4', '1.2.3.4'],
  ['2001:DB8:0:1:0:ffff::2', '2001:db8:0:1::/64'],
  ['2001:0db8:0000:0001::ff', '2001:db8:0:1::/64'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::1:2:3:4:5', '2001:db8:0:1::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::1.2.3.4', '0:0:0:0::/64'],
  ['', ''],
])('%s is counted as %s', (address, expected) => {
  expect(networkOf(address)).toBe(expected);
});
