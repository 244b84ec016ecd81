import http from 'node:http';
import type { LookupFunction } from 'node:net';
import { internalPortOffset } from '@content-platform/contract/services';

const limitMs = 1_000;

/** The readiness that an instance reports; 'silent' if no valid reply came within a second. */
export type Readiness = 'ready' | 'unready' | 'silent';

/** Asks an instance of the service at `url` for its readiness, on its internal listener. */
export function probe(url: URL, address: string, lookup: LookupFunction): Promise<Readiness> {
  const { promise, resolve } = Promise.withResolvers<Readiness>();
  const request = http.get({
    host: address,
    port: Number(url.port || 80) + internalPortOffset,
    path: '/health/ready',
    headers: { Host: url.host },
    agent: false,
    lookup,
    signal: AbortSignal.timeout(limitMs),
  });
  request.once('response', (response) => {
    resolve(response.statusCode === 200 ? 'ready' : 'unready');
    response.destroy();
  });
  request.on('error', () => resolve('silent'));
  return promise;
}
