import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Without the zone of a link-local address, which means something on this machine only. */
function parse(text: string): Address | undefined {
  return isIP(text) ? ipaddr.process(text.replace(/%.*$/, '')) : undefined;
}

/**
 * Who sent a request. From `trustedProxies` (CIDRs) X-Forwarded-For is believed: the client is its rightmost hop that
 * is not one of them, since everything further left was written by that hop. From anyone else it is ignored.
 */
export function createClientAddress(trustedProxies: readonly string[]): (request: IncomingMessage) => string {
  const networks = trustedProxies.map((cidr) => ipaddr.parseCIDR(cidr));
  const isTrusted = (address: Address) =>
    networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits));

  /** It stays the same for all requests of a connection. */
  const peers = new WeakMap<Socket, Address>();
  function peerOf(socket: Socket): Address | undefined {
    const peer = peers.get(socket) ?? parse(socket.remoteAddress ?? '');
    if (peer) peers.set(socket, peer);
    return peer;
  }

  return (request) => {
    const peer = peerOf(request.socket);
    // The socket is closed already: nobody will read the answer.
    if (!peer) return 'unknown';
    const hops = String(request.headers['x-forwarded-for'] ?? '').split(',');
    let client = peer;
    while (isTrusted(client)) {
      const hop = parse(hops.pop()?.trim() ?? '');
      if (!hop) break;
      client = hop;
    }
    return client.toString();
  };
}

/** The address as a rate limit sees it: an IPv6 host has its whole /64 to choose addresses from. */
export function limitedAddress(address: string): string {
  const parsed = parse(address);
  if (!(parsed instanceof ipaddr.IPv6)) return address;
  return parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':');
}
