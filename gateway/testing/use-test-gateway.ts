import { afterAll, afterEach, beforeAll, beforeEach, expect, jest } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { services } from '@content-platform/contract';
import { sendRaw } from '../../test/support/raw-http.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { sayOk, startUpstream, type RecordingUpstream } from './upstream.ts';

/** The gateway of a test, in front of a service that may misbehave. All are closed after the test. */
export interface GatewayFixture {
  /** Stands in for every service, unless a test names others. */
  upstream: RecordingUpstream;
  gateway: TestGateway;
  start(options?: Partial<TestGatewayOptions>): Promise<void>;
  /** Starts a server that calls `accept` with each connection. */
  startTcp(accept: (socket: Socket, count: number) => void): Promise<{ url: string; connections(): number }>;
  closeLater(close: () => unknown): void;
  ask(path: string, init?: RequestInit): Promise<Response>;
  get(init?: RequestInit): Promise<Response>;
  post(): Promise<Response>;
  /** Sends text, each character one byte, and returns the replies. */
  send(text: string): Promise<string>;
  /** Opens a connection to the gateway. */
  connect(): Socket;
  /** Sends text on a new connection; `received` returns the reply so far. */
  open(text: string): { socket: Socket; received(): string };
  /** gateway_upstream_errors_total that are not 0, by reason. */
  upstreamErrors(service?: string): Promise<Record<string, number>>;
  /** Moves performance.now() forward and stops it there until the test ends. */
  skipTime(ms: number): void;
}

/** The head of a reply whose body has this length. */
export const head = (length: number) => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`;

/** The request of `get`. */
export const rawGet = (more = '', version = '1.1') =>
  `GET /.well-known/jwks.json HTTP/${version}\r\nHost: x\r\n${more}\r\n`;

/** Status and error of a reply in the envelope. */
export async function errorOf(response: Response): Promise<[number, string]> {
  const body = (await response.json()) as { error: string; request_id: string };
  expect(response.headers.get('x-request-id')).toBe(body.request_id);
  return [response.status, body.error];
}

/**
 * Creates a service for each test of the file; the test starts its gateway. With `shared` options, creates one service and
 * one gateway for all tests; a test may start others.
 */
export function useTestGateway(shared?: Partial<TestGatewayOptions>): GatewayFixture {
  const closers: (() => unknown)[] = [];
  async function close(): Promise<void> {
    for (const each of closers.splice(0).toReversed()) await each();
  }
  const fixture = {
    async start(options = {}) {
      const all = Object.fromEntries(services.map(({ name }) => [name, fixture.upstream.url]));
      fixture.gateway = await startGateway({ ...options, services: { ...all, ...options.services } });
      closers.push(fixture.gateway.close);
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
    ask: (path, init = {}) => fetch(fixture.gateway.origin + path, init),
    get: (init) => fixture.ask('/.well-known/jwks.json', init),
    post: () =>
      fixture.ask('/api/login', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{"a":1}',
      }),
    send: (text) => sendRaw(fixture.gateway.origin, Buffer.from(text, 'latin1')),
    connect() {
      const socket = connect(Number(new URL(fixture.gateway.origin).port), '127.0.0.1');
      closers.push(() => socket.destroy());
      return socket.on('error', () => undefined);
    },
    open(text) {
      let received = '';
      const socket = fixture.connect().setEncoding('latin1');
      socket.on('data', (chunk: string) => (received += chunk)).write(text, 'latin1');
      return { socket, received: () => received };
    },
    async upstreamErrors(service = 'auth') {
      const { values } = await fixture.gateway.metrics.upstreamErrors.get();
      const counted = values.filter(({ labels, value }) => labels.service === service && value > 0);
      return Object.fromEntries(counted.map(({ labels, value }) => [labels.reason, value]));
    },
    skipTime(ms) {
      const later = performance.now() + ms;
      jest.spyOn(performance, 'now').mockReturnValue(later);
    },
  } as GatewayFixture;

  async function startService(): Promise<void> {
    fixture.upstream = await startUpstream();
    closers.push(fixture.upstream.close);
  }
  if (shared) {
    let gateway: TestGateway;
    let upstream: RecordingUpstream;
    const sharedClosers: (() => unknown)[] = [];
    beforeAll(async () => {
      await startService();
      await fixture.start(shared);
      ({ gateway, upstream } = fixture);
      sharedClosers.push(...closers.splice(0));
    });
    beforeEach(() => {
      upstream.answer = sayOk;
      upstream.connections = 0;
      for (const list of [upstream.received, gateway.log, gateway.slow]) list.splice(0);
      fixture.gateway = gateway;
    });
    afterAll(async () => {
      closers.push(...sharedClosers);
      await close();
    });
  } else beforeEach(startService);
  afterEach(async () => {
    await close();
    jest.restoreAllMocks();
  });
  return fixture;
}
