import { startHttpServer } from './http-server.ts';

/** An auth service without keys and revocations: the minimum for a process to become ready. */
export interface AuthStub {
  /** AUTH_URL and AUTH_INTERNAL_URL. */
  url: string;
  /** Accepts requests and never responds. */
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
