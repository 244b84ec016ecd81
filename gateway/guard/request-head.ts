import type { IncomingMessage } from 'node:http';
import { type Socket, isIP } from 'node:net';
import { HttpError } from '@content-platform/chassis';
import ipaddr from 'ipaddr.js';
import type { GatewayResponse, Step } from '../request-context.ts';

/**
 * Finds heads that another parser may read differently (request smuggling, RFC 9112 §3.2 and §6.1). Node's parser also
 * accepts versions 0.9 and 2.0, several Hosts, and transfer codings before `chunked`, which would hide the body.
 */
function problemOf({ httpVersion, headers, rawHeaders }: IncomingMessage): string | undefined {
  const isOld = httpVersion === '1.0';
  if (httpVersion !== '1.1' && !isOld) return 'The version must be HTTP/1.1 or HTTP/1.0.';
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || isOld))
    return 'The body must be sent plainly or chunked.';
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length;
  return hosts === 1 || (hosts === 0 && isOld) ? undefined : 'The request must have one Host header.';
}

/** After this number of ignored requests the connection is closed, because Node keeps them in memory until then. */
const maxIgnored = 100;
/** Requests that wait behind an unfinished reply of their connection. In one read, Node would accept 2,600 (10 MB). */
const maxPipelined = 32;

/** The check of request heads: `inspect` finds malformed heads, and `refuse` answers them once a context exists. */
export function createHeadCheck() {
  const problems = new WeakMap<IncomingMessage, string>();
  /** Ignored requests of each connection after a malformed head: Node's parser goes on, but may misread them. */
  const ignored = new WeakMap<Socket, number>();
  /** Requests of each connection that wait behind an unfinished reply. */
  const pipelined = new WeakMap<Socket, number>();
  const isMalformed = (request: IncomingMessage): boolean => problems.has(request);

  /** Counts a waiting request. Returns false if there are too many, and disconnects the client: it reads no replies. */
  function mayWait(socket: Socket, response: GatewayResponse): boolean {
    const count = (pipelined.get(socket) ?? 0) + 1;
    pipelined.set(socket, count);
    response.once('close', () => pipelined.set(socket, pipelined.get(socket)! - 1));
    if (count > maxPipelined) socket.destroy();
    return count <= maxPipelined;
  }

  /** Ignores requests after a malformed head: they may be part of its body. */
  const inspect: Step = (request, response) => {
    const { socket } = request;
    const count = ignored.get(socket);
    if (count !== undefined) {
      ignored.set(socket, count + 1);
      if (count >= maxIgnored) socket.destroy();
      return false;
    }
    // Without a socket, the reply waits for an earlier one. After a 408 the connection is ended: no reply can follow.
    if (socket.writableEnded || (response.socket === null && !mayWait(socket, response))) return false;
    const problem = problemOf(request);
    if (problem !== undefined) {
      problems.set(request, problem);
      ignored.set(socket, 0);
    }
    // The gateway does not upgrade. Node's parser discards the bytes after the request, so the connection must end.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
  };

  const refuse: Step = (request) => {
    const problem = problems.get(request);
    if (problem === undefined) return;
    throw new HttpError('malformed_request', problem, { headers: { Connection: 'close' } });
  };

  return { inspect, isMalformed, refuse };
}

/** The characters of RFC 3986 §3.3, on which parsers agree; not `;`, because some servers remove matrix parameters. */
const pathForm = /^(?:\/(?:[\w.~!$&'()*+,=:@-]|%[0-9a-f]{2})*)+$/i;
/** Printable ASCII except `"#<>\`. Browsers do not encode []{}|^ in queries. */
const queryForm = /^[!$-;=?-[\]-~]*$/;

/**
 * Encodings of `/`, `\`, `;`, `?`, `#` and `%`, which change the path when it is decoded or are decoded twice; and of
 * letters, digits and `-._~`, which RFC 3986 §2.3 discourages: some parsers read `/%6De` as `/me`.
 */
const ambiguous = /%(?:2[35d-f]|3[\dbf]|[46][1-9a-f]|[57][0-9a]|5[cf]|7e)/i;
const emptySegment = /\/\//;
const dotSegment = /\/\.\.?(?:\/|$)/;
// oxlint-disable-next-line no-control-regex
const control = /[\0-\x1f\x7f-\x9f]/;

const malformedTarget = (message: string) => new HttpError('malformed_target', message);

/** Decodes percent-encoded UTF-8 once. Throws 400 for broken encoding, other charsets and control characters. */
function decode(text: string): string {
  let decoded: string;
  try {
    decoded = decodeURIComponent(text);
  } catch {
    throw malformedTarget('The target is not valid percent-encoded UTF-8.');
  }
  if (control.test(decoded)) throw malformedTarget('The target contains a control character.');
  return decoded;
}

/**
 * Checks a request's target before anything parses it, and returns its path unchanged. Every parser reads an accepted
 * target in the same way. Throws 400 `malformed_target`.
 */
export function checkTarget(target: string): string {
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  const query = mark === -1 ? '' : target.slice(mark + 1);
  if (!pathForm.test(path))
    throw malformedTarget('The target must be a path of plain or percent-encoded characters.');
  if (ambiguous.test(path))
    throw malformedTarget('The path contains an encoded character that must not be encoded.');
  const decoded = decode(path);
  if (emptySegment.test(decoded)) throw malformedTarget('The path contains an empty segment.');
  if (dotSegment.test(decoded)) throw malformedTarget('The path contains a dot segment.');
  if (!queryForm.test(query)) throw malformedTarget('The query contains a character that must be encoded.');
  // Microsoft Entra ID returns a login's error with a description of several lines.
  decode(query.replace(/%0[ad]/gi, '+'));
  return path;
}

/** Checks the request's target and stores its path in the context. */
export const readTarget: Step = (request, { locals: context }) => {
  context.path = checkTarget(request.url);
};

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Parses an IP address without its zone, which is valid on one machine only. */
function parse(text: string): Address | undefined {
  return isIP(text) ? ipaddr.process(text.replace(/%.*$/, '')) : undefined;
}

/** Creates a check whether an address is in one of the networks (CIDRs). */
function createNetworkCheck(cidrs: readonly string[]) {
  const networks = cidrs.map((cidr) => ipaddr.parseCIDR(cidr));
  return (address?: Address) =>
    networks.some(([network, bits]) => network.kind() === address?.kind() && address.match(network, bits));
}

/** Creates a check whether a connection comes from one of `trustedProxies` (CIDRs). */
export function createProxyCheck(trustedProxies: readonly string[]) {
  const isTrusted = createNetworkCheck(trustedProxies);
  return ({ remoteAddress }: Socket) => isTrusted(parse(remoteAddress ?? ''));
}

/**
 * Creates the step that finds the client's IP address: the rightmost address in X-Forwarded-For that is not in
 * `trustedProxies` (CIDRs). The client itself can have sent the addresses to the left of it.
 */
export function createClientAddress(trustedProxies: readonly string[]): Step {
  const isTrusted = createNetworkCheck(trustedProxies);

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
      // Some proxies append the client's port to the address.
      const hop = parse((hops.pop() ?? '').trim().replace(/^\[(.*)\](?::\d+)?$|^([\d.]+):\d+$/, '$1$2'));
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
export function rateLimitAddress(address: string): string {
  const parsed = parse(address);
  if (!(parsed instanceof ipaddr.IPv6)) return address;
  return parsed.toNormalizedString().split(':', 4).join(':');
}
