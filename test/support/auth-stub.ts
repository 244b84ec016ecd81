import { startHttpServer } from './http-server.ts';

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
  const { origin: url, close } = await startHttpServer((request, response) => {
    stub.requests += 1;
    if (stub.hangs) return;
    response.end(request.url?.startsWith('/revocations') ? '{"revocations":[],"last":0}' : '{"keys":[]}');
  });
  const stub: AuthStub = { url, hangs: false, requests: 0, close };
  return stub;
}
