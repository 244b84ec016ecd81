import { isIP, type Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { EarlyStep } from '../request-context.ts';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Parses an IP address without its zone, which is valid on one machine only. */
function parse(text: string): Address | undefined {
  return isIP(text) ? ipaddr.process(text.replace(/%.*$/, '')) : undefined;
}

/**
 * Creates the step that finds the client's address. X-Forwarded-For is trusted from `trustedProxies` (CIDRs) only. The
 * client is its rightmost hop that is not a trusted proxy, because that hop wrote everything further left.
 */
export function createClientAddress(trustedProxies: readonly string[]): EarlyStep {
  const networks = trustedProxies.map((cidr) => ipaddr.parseCIDR(cidr));
  const isTrusted = (address: Address) =>
    networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits));

  const peers = new WeakMap<Socket, Address>();
  function peerOf(socket: Socket): Address | undefined {
    const peer = peers.get(socket) ?? parse(socket.remoteAddress ?? '');
    if (peer) peers.set(socket, peer);
    return peer;
  }

  function clientOf(peer: Address, forwardedFor: string): Address {
    const hops = forwardedFor.split(',');
    let client = peer;
    while (isTrusted(client)) {
      const hop = parse(hops.pop()?.trim() ?? '');
      if (!hop) break;
      client = hop;
    }
    return client;
  }

  return ({ socket, headers }, { locals: context }) => {
    const peer = peerOf(socket);
    const forwardedFor = String(headers['x-forwarded-for'] ?? '');
    // A socket without a peer is closed: the client will not read the reply.
    context.address = peer ? clientOf(peer, forwardedFor).toString() : 'unknown';
  };
}

/** Returns the address that rate limits count: an IPv6 host may use any address of its /64. */
export function limitedAddress(address: string): string {
  const parsed = parse(address);
  if (!(parsed instanceof ipaddr.IPv6)) return address;
  return parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':');
}
