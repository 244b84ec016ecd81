import { z } from 'zod';
import { endpointsWith, type ErrorEnvelope } from '@content-platform/contract';
import { startHttpServer } from '../../../test/support/http-server.ts';
import { HttpError } from '../http-error.ts';
import { createLogger } from '../logger.ts';
import { createMetrics } from '../metrics.ts';
import { createService, type Route } from '../service.ts';
import type { Caller } from '../tokens.ts';

/** Defines a public endpoint that returns any JSON. */
export const define = endpointsWith({
  service: 'auth',
  access: 'public',
  summary: '',
  responses: { 200: { description: '', schema: z.unknown() } },
});

const callers: Record<string, Caller> = {
  person: { kind: 'user', id: 1, sessionId: 's', mustChangePassword: false, scopes: new Set() },
  machine: { kind: 'machine', clientId: 'cms', scopes: new Set(['cache:clear']) },
};

export async function serve(routes: readonly Route[]) {
  const log: string[] = [];
  const metrics = createMetrics('auth');
  const tokens = {
    verify: (token: string) => {
      const caller = callers[token];
      return caller ? Promise.resolve(caller) : Promise.reject(new HttpError('invalid_token', 'No.'));
    },
  };
  const logger = createLogger('auth', 'info', { write: (line) => void log.push(line) });
  const app = createService({ name: 'auth', logger, metrics, tokens }, routes);
  /** The client address of the socket: tests always connect from this address. */
  const peer = { address: '127.0.0.1' };
  const { origin, close } = await startHttpServer((request, response) => {
    Object.defineProperty(request.socket, 'remoteAddress', { value: peer.address, configurable: true });
    app(request, response);
  });
  async function ask(path: string, init: RequestInit = {}) {
    const response = await fetch(origin + path, init);
    const { status, headers } = response;
    return { status, headers, body: (await response.json()) as ErrorEnvelope };
  }
  return { origin, log, metrics, peer, close, ask };
}
