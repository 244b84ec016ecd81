import { isIP, SocketAddress } from 'node:net';

/** A host can choose any address of its /64, and a site any network of its /48. */
type Prefix = 48 | 64;

/**
 * Returns the network in CIDR form for which guesses from an IP address are counted. For IPv4, also written as IPv6,
 * this is the single address. For IPv6 it is the network of this prefix length.
 */
export function networkOf(address: string, prefix: Prefix = 64): string {
  if (isIP(address) !== 6) return address;
  const canonical = new SocketAddress({ address: address.replace(/%.*/, ''), family: 'ipv6' }).address;
  const mapped = /^::ffff:([\d.]+)$/.exec(canonical)?.[1];
  if (mapped) return mapped;
  const [left = [], right = []] = canonical.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  return `${[...left, ...zeros, ...right].slice(0, prefix / 16).join(':')}::/${prefix}`;
}
