import { afterEach, beforeEach, expect } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { startUpstream, type RecordingUpstream } from './upstream.ts';

/** The gateway of a test, in front of a service that may misbehave. Everything is closed after the test. */
export interface GatewayFixture {
  /** content-cache, and whatever else a test wants of it. */
  upstream: RecordingUpstream;
  gateway: TestGateway;
  /** Starts the gateway; auth is at `url`. */
  start(url: string, options?: Partial<TestGatewayOptions>): Promise<void>;
  /** A server that does with each connection what `accept` does. */
  startTcp(accept: (socket: Socket, count: number) => void): Promise<{ url: string; connections(): number }>;
  closeLater(close: () => unknown): void;
  get(init?: RequestInit): Promise<Response>;
  post(): Promise<Response>;
  /** A bare connection to the gateway. */
  connect(): Socket;
  /** gateway_upstream_errors_total that are not 0, by reason. */
  upstreamErrors(service?: string): Promise<Record<string, number>>;
}

/** The head of a reply with a body of so many bytes. */
export const head = (length: number) => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`;

/** A request for what `get` asks for. */
export const rawGet = (more = '', version = '1.1') =>
  `GET /.well-known/jwks.json HTTP/${version}\r\nHost: x\r\n${more}\r\n`;

/** Status and error of a reply in the envelope. */
export async function errorOf(response: Response): Promise<[number, string]> {
  const body = (await response.json()) as { error: string; request_id: string };
  expect(response.headers.get('x-request-id')).toBe(body.request_id);
  return [response.status, body.error];
}

/** Sets a new fixture for each test of the file. */
export function useTestGateway(): GatewayFixture {
  const closers: (() => unknown)[] = [];
  const fixture = {
    async start(url, options = {}) {
      fixture.gateway = await startGateway({
        services: { auth: url, 'content-cache': fixture.upstream.url },
        ...options,
      });
      closers.push(() => fixture.gateway.close());
    },
    async startTcp(accept) {
      let count = 0;
      const sockets = new Set<Socket>();
      const server = createServer((socket) => {
        socket.on('error', () => undefined);
        sockets.add(socket);
        accept(socket, (count += 1));
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      closers.push(() => {
        server.close();
        for (const socket of sockets) socket.destroy();
      });
      return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => count };
    },
    closeLater: (close) => void closers.push(close),
    get: (init = {}) => fetch(`${fixture.gateway.origin}/.well-known/jwks.json`, init),
    post: () =>
      fetch(`${fixture.gateway.origin}/api/login`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{"a":1}',
      }),
    connect: () => connect(Number(new URL(fixture.gateway.origin).port), '127.0.0.1'),
    async upstreamErrors(service = 'auth') {
      const { values } = await fixture.gateway.metrics.upstreamErrors.get();
      const own = values.filter(({ labels, value }) => labels.service === service && value > 0);
      return Object.fromEntries(own.map(({ labels, value }) => [labels.reason, value]));
    },
  } as GatewayFixture;

  beforeEach(async () => {
    fixture.upstream = await startUpstream();
    closers.push(() => fixture.upstream.close());
  });
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
  });
  return fixture;
}
