import http from 'node:http';
import https from 'node:https';

const answerWithinMs = 1_000;

/** ready; unready: it says so itself; silent: nothing, or nothing that could be understood, came within a second. */
export type Readiness = 'ready' | 'unready' | 'silent';

/** Asks one instance of the service at `url` for its readiness: its internal listener is 1000 above its public one. */
export function probe(url: URL, address: string): Promise<Readiness> {
  const isTls = url.protocol === 'https:';
  const { promise, resolve } = Promise.withResolvers<Readiness>();
  const request = (isTls ? https : http).get({
    host: address,
    port: Number(url.port || (isTls ? 443 : 80)) + 1000,
    path: '/health/ready',
    headers: { Host: url.host },
    agent: false,
    signal: AbortSignal.timeout(answerWithinMs),
  });
  request.once('response', (response) => {
    resolve(response.statusCode === 200 ? 'ready' : 'unready');
    response.destroy();
  });
  request.on('error', () => resolve('silent'));
  return promise;
}
