import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An auth service that publishes no key and no revocation: what a process needs to be ready, and no more. */
export interface AuthStub {
  /** AUTH_URL and AUTH_INTERNAL_URL. */
  url: string;
  /** Takes requests, and answers none. */
  hangs: boolean;
  /** Number of requests so far. */
  requests: number;
  close(): void;
}

export async function startAuthStub(): Promise<AuthStub> {
  const server = createServer(({ url }, response) => {
    stub.requests += 1;
    if (stub.hangs) return;
    response.end(url?.startsWith('/revocations') ? '{"revocations":[],"last":0}' : '{"keys":[]}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const stub: AuthStub = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hangs: false,
    requests: 0,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  return stub;
}
