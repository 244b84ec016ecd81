import { expect, test } from '@jest/globals';
import { createCookie, createOriginCheck } from './cookie.ts';

test('under an https URL, no other host of the domain can set the cookie', () => {
  const cookie = createCookie('https://api.example.com');
  // Browsers accept the prefix only with Secure and the path /, and without a domain.
  for (const sent of [cookie.set('x'), cookie.clear()])
    expect(sent).toMatch(/^__Host-pulse=x?; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
  expect(cookie.read('pulse=planted; __Host-pulse=own')).toBe('own');
  expect(cookie.read('pulse=planted')).toBeUndefined();
});

test('under an http URL, browsers accept the cookie without TLS', () => {
  const sent = createCookie('http://127.0.0.1:8080').set('x');
  expect(sent).toMatch(/^pulse=x; Max-Age=\d+; Path=\/pulse; HttpOnly; SameSite=Strict$/);
});

test.each([
  [{ origin: 'https://api.example.com' }, true],
  [{ origin: 'https://api.example.com:8443' }, false],
  [{ origin: 'http://api.example.com' }, false],
  [{ origin: 'null' }, false],
  [{ origin: 'null', 'sec-fetch-site': 'same-origin' }, true],
  [{ origin: 'https://other.example.com', 'sec-fetch-site': 'same-site' }, false],
  [{ 'sec-fetch-site': 'none' }, false],
  [{}, false],
])('accepts a form sent with %j: %s', (headers: Record<string, string>, passes) => {
  const check = () => createOriginCheck('https://api.example.com/')((name) => headers[name]);
  if (passes) expect(check).not.toThrow();
  else expect(check).toThrow('Use https://api.example.com/pulse only.');
});
