import { expect, test } from '@jest/globals';
import { createCookie } from './cookie.ts';
import { createOriginCheck } from './same-origin.ts';

test('sends the cookie over https only if the public URL is https', () => {
  expect(createCookie('https://api.example.com').give('x')).toContain('; Secure');
  expect(createCookie('http://127.0.0.1:8080').give('x')).not.toContain('Secure');
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
  else expect(check).toThrow('at its own address');
});
