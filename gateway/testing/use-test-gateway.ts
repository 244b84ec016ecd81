import { afterAll, afterEach, beforeAll, beforeEach, expect, jest } from '@jest/globals';
import { connect, type Socket } from 'node:net';
import { services } from '@content-platform/contract';
import { sendRaw } from '../../test/support/raw-http.ts';
import { startTcpServer } from '../../test/support/tcp-server.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { host, sayOk, startUpstream, type RecordingUpstream } from './upstream.ts';

/** The head of a reply whose body has this length. */
export const head = (length: number) => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`;

export const rawGet = (more = '', version = '1.1') =>
  `GET /.well-known/jwks.json HTTP/${version}\r\nHost: x\r\n${more}\r\n`;

export async function errorOf(response: Response): Promise<[number, string]> {
  const body = (await response.json()) as { error: string; request_id: string };
  expect(response.headers.get('x-request-id')).toBe(body.request_id);
  return [response.status, body.error];
}

/**
 * Creates a service for each test of the file, which may misbehave; the test starts its gateway. With `shared` options,
 * creates one service and one gateway for all tests; a test may start others. All are closed after the test.
 */
export function useTestGateway(shared?: Partial<TestGatewayOptions>) {
  const closers: (() => unknown)[] = [];
  async function close(): Promise<void> {
    for (const each of closers.splice(0).toReversed()) await each();
  }
  const fixture = {
    /** Stands in for every service, unless a test names others. */
    upstream: undefined as unknown as RecordingUpstream,
    gateway: undefined as unknown as TestGateway,
    async start(options: TestGatewayOptions = {}): Promise<void> {
      const all = Object.fromEntries(services.map(({ name }) => [name, fixture.upstream.url]));
      fixture.gateway = await startGateway({ ...options, services: { ...all, ...options.services } });
      closers.push(fixture.gateway.close);
    },
    /** Starts a server that calls `accept` with each connection. */
    async startTcp(accept: (socket: Socket, count: number) => void) {
      const server = await startTcpServer(accept, host);
      closers.push(server.close);
      return server;
    },
    closeLater: (close: () => unknown) => void closers.push(close),
    ask: (path: string, init: RequestInit = {}): Promise<Response> =>
      fetch(fixture.gateway.origin + path, init),
    get: (init?: RequestInit): Promise<Response> => fixture.ask('/.well-known/jwks.json', init),
    post: (): Promise<Response> =>
      fixture.ask('/api/login', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{"a":1}',
      }),
    /** Sends text, each character one byte, and returns the replies. */
    send: (text: string): Promise<string> => sendRaw(fixture.gateway.origin, Buffer.from(text, 'latin1')),
    connect(): Socket {
      const socket = connect(Number(new URL(fixture.gateway.origin).port), '127.0.0.1');
      closers.push(() => socket.destroy());
      return socket.on('error', () => undefined);
    },
    /** Sends text on a new connection; `received` returns the reply so far. */
    open(text: string): { socket: Socket; received: () => string } {
      let received = '';
      const socket = fixture.connect().setEncoding('latin1');
      socket.on('data', (chunk: string) => (received += chunk)).write(text, 'latin1');
      return { socket, received: () => received };
    },
    /** Returns gateway_upstream_errors_total that are not 0, by reason. */
    async upstreamErrors(service = 'auth'): Promise<Record<string, number>> {
      const { values } = await fixture.gateway.metrics.upstreamErrors.get();
      const counted = values.filter(({ labels, value }) => labels.service === service && value > 0);
      return Object.fromEntries(counted.map(({ labels, value }) => [labels.reason, value]));
    },
    /** Moves performance.now() forward and stops it there until the test ends. */
    skipTime(ms: number): void {
      const later = performance.now() + ms;
      jest.spyOn(performance, 'now').mockReturnValue(later);
    },
  };

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
