import { beforeEach, describe, expect, test } from '@jest/globals';
import { HttpError } from '@content-platform/chassis';
import { createMemoryFailures } from './failures.ts';
import { createLoginThrottle, networkOf, type LoginThrottle } from './login-throttle.ts';

const [ann, bob] = ['ann@example.com', 'bob@example.com'];
const [here, elsewhere] = ['192.0.2.1', '192.0.2.2'];

let now = 0;
let throttle: LoginThrottle;
let checks = 0;
/** The networks with which isKnown was called. */
let asked: string[] = [];
beforeEach(() => {
  throttle = createLoginThrottle(createMemoryFailures(() => now));
  checks = 0;
  asked = [];
});

interface Try {
  right?: boolean;
  known?: boolean;
}

/** 'in', 'wrong', or the seconds to wait. */
async function guess(account: string, address: string, { right = false, known = false }: Try = {}) {
  const isKnown = async (network: string) => {
    asked.push(network);
    return known;
  };
  try {
    const { outcome, limited } = await throttle.run({ account, address, isKnown }, async () => {
      checks += 1;
      return { ok: right };
    });
    if (limited) throw limited;
    return outcome.ok ? 'in' : 'wrong';
  } catch (error) {
    if (error instanceof HttpError && error.error === 'rate_limited')
      return Number(error.headers['Retry-After']);
    throw error;
  }
}
async function guessTimes(times: number, account: string, address: string, more: Try = {}) {
  for (let n = 0; n < times; n += 1) expect(await guess(account, address, more)).toBe('wrong');
}

test('after 10 failures every further attempt has to wait, from 1 s doubling to 15 min', async () => {
  await guessTimes(10, ann, here);
  expect(await guess(ann, here, { right: true })).toBe(1);
  expect(checks).toBe(10);
  for (const wait of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]) {
    expect(await guess(ann, here)).toBe(wait);
    now += wait * 1_000 - 1;
    expect(await guess(ann, here)).toBe(1);
    now += 1;
    expect(await guess(ann, here)).toBe('wrong');
  }
});

test('failures are forgotten after 15 minutes', async () => {
  for (const passed of [900_000, 899_999]) await guessTimes(9, ann, here).then(() => (now += passed));
  expect([await guess(ann, here), await guess(ann, here)]).toEqual(['wrong', 1]);
});

test('other accounts there, and the account elsewhere, do not have to wait', async () => {
  await guessTimes(10, ann, here);
  expect(await guess(bob, here, { right: true })).toBe('in');
  expect(await guess(ann, elsewhere, { right: true })).toBe('in');
});

test('a success resets the failures of the account there', async () => {
  await guessTimes(9, ann, here);
  expect(await guess(ann, here, { right: true })).toBe('in');
  await guessTimes(10, ann, here);
});

test('after 200 failures from an address every account has to wait there; successes do not count', async () => {
  for (let n = 0; n < 199; n += 1) expect(await guess(`${n}@example.com`, here)).toBe('wrong');
  for (let n = 0; n < 5; n += 1) expect(await guess(bob, here, { right: true })).toBe('in');
  expect(await guess(ann, here)).toBe('wrong');
  expect(await guess(bob, here, { right: true })).toBe(1);
  expect(await guess(bob, elsewhere, { right: true })).toBe('in');
});

test('a success does not reset failures of other accounts there', async () => {
  for (let n = 0; n < 200; n += 1) {
    expect(await guess(`${n}@example.com`, here)).toBe('wrong');
    if (n % 20 === 0) expect(await guess(bob, here, { right: true })).toBe('in');
  }
  expect(await guess(bob, here)).toBe(1);
});

test.each([
  ['2001:db8:1:2::1', '2001:db8:1:2:ffff::2', '2001:db8:1:3::1'],
  ['192.0.2.1', '::ffff:192.0.2.1', '::ffff:192.0.2.2'],
])('counts %s and %s as one network, and not %s', async (one, other, another) => {
  await guessTimes(10, ann, one);
  expect(await guess(ann, other)).toBe(1);
  expect(await guess(ann, another)).toBe('wrong');
});

/** Guesses once from each of `count` networks of one site, which an attacker can rent. Returns the number of checks. */
async function guessFromSite(count: number, more: Try = {}): Promise<number> {
  for (let n = 0; n < count; n += 1) await guess(ann, `2001:db8:7:${n.toString(16)}::1`, more);
  return checks;
}

test('360 guesses at one account from 40 networks of one IPv6 site: 30 are checked', async () => {
  for (let round = 0; round < 9; round += 1) await guessFromSite(40);
  expect(checks).toBe(30);
  expect(await guess(ann, '2001:db8:8::1')).toBe('wrong');
});

test('after 600 failures from an IPv6 site every account has to wait there', async () => {
  for (let n = 0; n < 600; n += 1)
    expect(await guess(`${n}@example.com`, `2001:db8:7:${n.toString(16)}::1`)).toBe('wrong');
  expect(await guess(bob, '2001:db8:7:ffff::1')).toBe(1);
});

test('after 100 failures of an account from everywhere, unknown networks wait at most a minute, known ones do not', async () => {
  for (let n = 0; n < 100; n += 1) expect(await guess(ann, `198.51.100.${n}`)).toBe('wrong');
  expect(await guess(ann, here, { right: true })).toBe(1);
  expect(await guess(ann, here, { right: true, known: true })).toBe('in');
  expect(await guess(bob, here, { right: true })).toBe('in');
  let longest = 0;
  for (let n = 100; n < 120; n += 1) {
    const wait = Number(await guess(ann, `198.51.100.${n}`));
    longest = Math.max(longest, wait);
    now += wait * 1_000;
    expect(await guess(ann, `198.51.100.${n}`)).toBe('wrong');
  }
  expect(longest).toBe(60);
});

test('failures from everywhere, and of a known network, count as long as the caller says', async () => {
  const attempt = { account: ann, isKnown: async () => true, windowMs: 86_400_000 };
  const wrong = async () => ({ ok: false });
  for (let n = 0; n < 100; n += 1) {
    now += 800_000;
    await throttle.run({ ...attempt, address: `198.51.100.${n}` }, wrong);
  }
  expect(await guess(ann, here, { right: true })).toBe(1);
  for (let n = 0; n < 130; n += 1) {
    now += 10_000;
    await throttle.run({ ...attempt, address: here }, wrong).catch(() => undefined);
  }
  await expect(throttle.run({ ...attempt, address: here }, wrong)).rejects.toThrow('Too many');
});

test('an error of the check is not a failure', async () => {
  const isKnown = async () => false;
  for (let n = 0; n < 250; n += 1) {
    const check = () => Promise.reject<{ ok: boolean }>(new Error('no database'));
    await expect(throttle.run({ account: ann, address: here, isKnown }, check)).rejects.toThrow('database');
  }
  await guessTimes(10, ann, here);
});

describe('a known network', () => {
  test('is looked up only if the attempt would have to wait', async () => {
    await guessTimes(10, ann, '2001:db8:1:2::1');
    expect(asked).toEqual([]);
    await guess(ann, '2001:db8:1:2::1');
    expect(asked).toEqual(['2001:db8:1:2::/64']);
  });

  test('may log in during the wait, and gets the same 429 for a wrong password', async () => {
    await guessTimes(10, ann, here);
    expect(await guess(ann, here, { known: true })).toBe(1);
    expect(await guess(ann, here, { known: true, right: true })).toBe('in');
    await guessTimes(10, ann, here);
  });

  test('may log in after too many failures of other accounts', async () => {
    for (let n = 0; n < 200; n += 1) await guess(`${n}@example.com`, here);
    expect(await guess(ann, here, { known: true, right: true })).toBe('in');
    expect(await guess(bob, here, { right: true })).toBe(1);
  });

  test('has to wait after 100 more failures', async () => {
    await guessTimes(10, ann, here);
    for (let n = 0; n < 100; n += 1) expect(await guess(ann, here, { known: true })).toBe(1);
    expect(checks).toBe(110);
    expect(await guess(ann, here, { known: true, right: true })).toBe(1);
    expect(checks).toBe(110);
  });

  test('has its failures reset by a success', async () => {
    await guessTimes(10, ann, here);
    for (let n = 0; n < 99; n += 1) await guess(ann, here, { known: true });
    expect(await guess(ann, here, { known: true, right: true })).toBe('in');
    await guessTimes(10, ann, here);
    await guess(ann, here, { known: true });
    expect(await guess(ann, here, { known: true, right: true })).toBe('in');
  });
});

test.each([
  ['2001:DB8:0:1:0:ffff::2', '2001:db8:0::/48'],
  ['::ffff:1.2.3.4', '1.2.3.4'],
  ['1.2.3.4', '1.2.3.4'],
])('the IPv6 site of %s is %s', (address, expected) => {
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
])('counts %s as %s', (address, expected) => {
  expect(networkOf(address)).toBe(expected);
});
