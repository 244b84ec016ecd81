import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import type { ErrorEnvelope } from '@content-platform/contract';
import { HttpError } from '../http-error.ts';
import { createLogger } from '../logger.ts';
import { createMetrics } from '../metrics.ts';
import { createService, type Route } from '../service.ts';
import type { Caller } from '../tokens.ts';

/** What the endpoints of a test have in common. */
export const base = {
  service: 'auth',
  rateLimit: { requests: 1, seconds: 1 },
  summary: '',
  responses: { 200: { description: '', schema: z.unknown() } },
} as const;

/** Who they are is their token. */
const callers: Record<string, Caller> = {
  person: { kind: 'user', id: 1, sessionId: 's', mustChangePassword: false, scopes: new Set() },
  machine: { kind: 'machine', clientId: 'cms', scopes: new Set(['cache:clear']) },
};

/** A service with these routes, on a port of its own. */
export async function serve(routes: readonly Route[]) {
  const log: string[] = [];
  const metrics = createMetrics('auth');
  const tokens = {
    verify: (token: string) => {
      const caller = callers[token];
      return caller ? Promise.resolve(caller) : Promise.reject(new HttpError(401, 'invalid_token', 'No.'));
    },
  };
  const logger = createLogger('auth', 'info', { write: (line) => void log.push(line) });
  const app = createService({ name: 'auth', logger, metrics, tokens }, routes);
  const served = {
    origin: '',
    log,
    metrics,
    /** What the socket tells of the other end, where a test cannot have one there. */
    peer: '127.0.0.1',
    async ask(path: string, init: RequestInit = {}) {
      const response = await fetch(served.origin + path, init);
      return {
        status: response.status,
        headers: response.headers,
        body: (await response.json()) as ErrorEnvelope,
      };
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  const server = createServer((request, response) => {
    Object.defineProperty(request.socket, 'remoteAddress', { value: served.peer, configurable: true });
    app(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  served.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return served;
}
