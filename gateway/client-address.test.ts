import { expect, test } from '@jest/globals';
import type { IncomingMessage } from 'node:http';
import { createClientAddress } from './client-address.ts';

const clientAddress = createClientAddress(['10.0.0.0/8', 'fe80::/10']);
/** Whose request it is, given the peer's address as the socket has it. */
const sentBy = (remoteAddress: string | undefined, forwarded?: string) =>
  clientAddress({
    socket: { remoteAddress },
    headers: { 'x-forwarded-for': forwarded },
  } as unknown as IncomingMessage);

test.each([
  ['fe80::1%eth0', undefined, 'fe80::1'],
  ['fe80::1%eth0', '203.0.113.7', '203.0.113.7'],
  ['10.0.0.1', '2001:db8::7%5', '2001:db8::7'],
  ['::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
  ['203.0.113.9', '203.0.113.7', '203.0.113.9'],
  ['10.0.0.1', '198.51.100.1, 203.0.113.7, 10.0.0.2', '203.0.113.7'],
  ['10.0.0.1', '203.0.113.7, nobody', '10.0.0.1'],
  [undefined, '203.0.113.7', 'unknown'],
])('from %s, which forwards for %s: %s', (peer, forwarded, client) => {
  expect(sentBy(peer, forwarded)).toBe(client);
});
