import { startHttpServer } from './http-server.ts';

/** Starts auth without keys and revocations, for AUTH_URL and AUTH_INTERNAL_URL; `hangs`: paths without a reply. */
export async function startAuthStub() {
  const { origin: url, close } = await startHttpServer((request, response) => {
    stub.requests += 1;
    if (stub.hangs.test(request.url!)) return;
    response.end(request.url?.startsWith('/revocations') ? '{"revocations":[],"last":0}' : '{"keys":[]}');
  });
  const stub = { url, hangs: /^$/, requests: 0, close };
  return stub;
}
