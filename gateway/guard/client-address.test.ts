import { expect, test } from '@jest/globals';
import type { Request } from 'express';
import type { GatewayResponse } from '../request-context.ts';
import { createClientAddress } from './head.ts';

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
  ['10.0.0.1', '2001:DB8:0:0::1', '2001:db8::1'],
  [undefined, '203.0.113.7', 'unknown'],
])('a request from %s with X-Forwarded-For %s has the client %s', (peer, forwarded, client) => {
  expect(clientOf(peer, forwarded)).toBe(client);
});
