import { isIP, SocketAddress } from 'node:net';

/**
 * Where guesses from an address are counted, in CIDR form: an IPv4 address alone, also when it is written as IPv6; of
 * an IPv6 address its /64, which is the host's to choose addresses from.
 */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const canonical = new SocketAddress({ address: address.replace(/%.*/, ''), family: 'ipv6' }).address;
  const mapped = /^::ffff:([\d.]+)$/.exec(canonical)?.[1];
  if (mapped) return mapped;
  const [left = [], right = []] = canonical.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}
