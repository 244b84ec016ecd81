import { startHttpServer } from './http-server.ts';

/** Starts an auth service without keys and revocations, with which a process becomes ready: AUTH_URL and AUTH_INTERNAL_URL. */
export async function startAuthStub() {
  const { origin: url, close } = await startHttpServer((request, response) => {
    stub.requests += 1;
    if (stub.hangs.test(request.url!)) return;
    response.end(request.url?.startsWith('/revocations') ? '{"revocations":[],"last":0}' : '{"keys":[]}');
  });
  const stub = { url, hangs: /^$/, requests: 0, close };
  return stub;
}
