import { describe, expect, test } from '@jest/globals';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Request } from 'express';
import fc from 'fast-check';
import type { GatewayRequest, GatewayResponse } from '../request-context.ts';
import { checkTarget, createClientAddress, createHeadCheck } from './request-head.ts';

const words = (text: string) => text.trim().split(/\s+/);

const refusal = (target: string) => {
  try {
    checkTarget(target);
    return undefined;
  } catch (error) {
    return (error as { error?: string }).error;
  }
};

test.each(
  words(String.raw`
    / /api/me /api/me/ /api/content/webform/12?view=summary /.well-known/jwks.json /api/a...b/... /api/.x
    /api/content/caf%C3%A9/1 /api/content/a%20b%5B%7C/1 /api/x,y=1,2/@a:b!$&(c)*+ /api/me? /api/me??
    /api/me?a=b?c=/../x /api/me?a=%2e%2e%2F%25&filter[x]={y}|z^ /api/me?a=b%0D%0Ac
  `),
)('accepts %s unchanged', (target) => {
  expect(checkTarget(target)).toBe(target.split('?')[0]);
});

describe.each([
  ['a target that is not a path', '* api/me http://x/api/me http://[ //x/api/me ?a # x:80 \\api'],
  [
    'dot segments, plain, encoded, with matrix parameters',
    `/. /.. /api/. /api/.. /api/./me /api/../me /../api/me /api/..;/me /api/.;x/me /api/..;
     /api/%2e/me /api/%2E%2e/me /api/.%2e/me /api/%2e./me /api/%2e%2e%2fme /api/me%2e
     /api/..%3b/me /api/.%3Bx/me /api/..%3b`,
  ],
  ['empty segments', '/api//me // /api/me// ///api/me'],
  [
    'matrix parameters, a query or a fragment within it, which some servers cut off',
    `/api/;/me /api/;x=y/me /; /api/%3b/me /%3Bx=y /api/me;x=1 /api/me;x/login /api/me%3bx/login /api/me%3fx/login
     /api/me%3F/login /api/me%23/login`,
  ],
  [
    'path structure that only decoding reveals',
    String.raw`/api%2fme /api%2Fme /api%5cme /api%5Cme /api\me /api/..\me /api%252fme /api/%25 /api/%252e%252e/me
     /api/%25%32%65/me`,
  ],
  ['encoded unreserved characters', '/api/%6de /%61pi /api/%4D /api/%5a /%30 /%39 /%2d /%5F /%7e'],
  ['encoded controls', '/%00 /%0d%0a /%1f /%7f /api/%C2%85 /api?a=%00 /api?a=%7F /api?%c2%80'],
  [
    'broken percent-encoding',
    '/api/% /api/%2 /api/%zz /api/%u002e /api?a=% /api?a=%g1 /api?a=%2 /api?a=%4%0a1',
  ],
  [
    'bytes that are not UTF-8',
    '/%ff /%c0%ae /%c0%af /%e0%80%af /%ed%a0%80 /%80 /%f4%90%80%80 /api?a=%c3 /api?a=%ff',
  ],
  [
    'characters that are invalid in URLs',
    String.raw`/é /\u2024 /api?a=é /#x /api?a#x /"x" /<x> /{x} /[x] /x|y /x^y /api?a=\ /api?"`,
  ],
])('refuses %s', (_, targets) => {
  test.each(words(targets))('%s', (target) => {
    expect(refusal(target)).toBe('malformed_target');
  });
});

test('refuses control characters, spaces and an empty target', () => {
  const targets = ['', ...'/api/\0|/api/\t|/api/\n|/api/\x7f|/a b|/api?\0|/api?a=\x01|/api?a b'.split('|')];
  for (const target of targets) expect([target, refusal(target)]).toEqual([target, 'malformed_target']);
});

const pieces = words(
  String.raw`/ . .. \ % %2 %2e %2F %5c %25 %61 %C3%A9 %c0%ae %00 %0a api me admin ; ? # & = : @ // http://x é A ~ |`,
).concat(' ', '\t', '\0');

test('every parser reads an accepted target in the same way', () => {
  const targets = fc
    .array(fc.constantFrom(...pieces), { maxLength: 12 })
    .map((parts) => `/${parts.join('')}`);
  let passed = 0;
  fc.assert(
    fc.property(targets, (target) => {
      if (refusal(target)) return;
      passed += 1;
      const path = checkTarget(target);
      const url = new URL(target, 'http://gateway');
      expect(url.host).toBe('gateway');
      expect(url.pathname).toBe(path);
      const decoded = decodeURIComponent(path);
      expect(decoded.split('/')).toHaveLength(path.split('/').length);
      // A second decoding changes nothing.
      expect(decodeURIComponent(decoded)).toBe(decoded);
    }),
    { numRuns: 20_000, seed: 1 },
  );
  expect(passed).toBeGreaterThan(500);
});

test.each([
  ['after a malformed head', '2.0'],
  ['before it reads the replies', '1.0'],
])('disconnects a client that sends many requests %s', (_, httpVersion) => {
  const { inspect } = createHeadCheck();
  const socket = new Socket();
  const request = Object.assign(new IncomingMessage(socket), { httpVersion }) as GatewayRequest;
  const response = { socket: null, once: () => undefined } as unknown as GatewayResponse;
  for (let sent = 0; sent < 10; sent += 1) void inspect(request, response);
  expect(socket.destroyed).toBe(false);
  for (let sent = 0; sent < 1_000; sent += 1) void inspect(request, response);
  expect(socket.destroyed).toBe(true);
});

const readClientAddress = createClientAddress(['10.0.0.0/8', 'fe80::/10']);

function clientOf(remoteAddress: string | undefined, forwarded?: string): string {
  const request = { socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } };
  const response = { locals: { address: '' } } as GatewayResponse;
  readClientAddress(request as unknown as Request, response);
  return response.locals.address;
}

test.each([
  ['fe80::1%eth0', undefined, 'fe80::1'],
  ['fe80::1%eth0', '203.0.113.7', '203.0.113.7'],
  ['10.0.0.1', '2001:db8::7%5', '2001:db8::7'],
  ['::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
  ['203.0.113.9', '203.0.113.7', '203.0.113.9'],
  ['10.0.0.1', '198.51.100.1, 203.0.113.7, 10.0.0.2', '203.0.113.7'],
  ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
  ['10.0.0.1', '203.0.113.7, nobody', '10.0.0.1'],
  ['10.0.0.1', '203.0.113.7, nobody, 10.0.0.2', '10.0.0.2'],
  ['10.0.0.1', '012.0.0.1', '10.0.0.1'],
  ['10.0.0.1', '::ffff:203.0.113.7, fe80::2', '203.0.113.7'],
  ['10.0.0.1', '203.0.113.7:5678, [2001:db8::1]:443', '2001:db8::1'],
  ['10.0.0.1', '203.0.113.7:5678', '203.0.113.7'],
  ['10.0.0.1', '2001:DB8:0:0::1', '2001:db8::1'],
  [undefined, '203.0.113.7', 'unknown'],
])('a request from %s with X-Forwarded-For %s has the client %s', (peer, forwarded, client) => {
  expect(clientOf(peer, forwarded)).toBe(client);
});
