import { once } from 'node:events';
import { createServer, type ServerOptions } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Redis } from 'ioredis';
import { endpoints as contractEndpoints } from '@content-platform/contract';
import {
  createLogger,
  createMetrics,
  createRedis,
  createTokenVerifier,
  createJwksClient,
  type SlowRequest,
} from '@content-platform/chassis';
import { startJwksServer } from '@content-platform/chassis/testing/jwks-server.ts';
import { createGateway, type GatewayOptions } from '../app.ts';
import { createGatewayMetrics } from '../metrics.ts';
import { createRateLimits } from '../guard/rate-limit.ts';
import { serverOptions, timeouts, type Timeouts } from '../timeouts.ts';
import { issuer, testKey } from './tokens.ts';

export interface TestGatewayOptions extends Partial<Omit<GatewayOptions, 'timeouts'>> {
  redisUrl?: string;
  /** Limit of a command to Redis, in ms; the default is so long that a busy machine changes no count. */
  redisTimeout?: number;
  scale?: number;
  timeouts?: Partial<Timeouts>;
  server?: ServerOptions;
}

/** Starts a gateway as main.ts does, on a free port. Services that `services` does not name are unreachable. */
export async function startGateway({
  redisUrl,
  redisTimeout = 10_000,
  scale = 1,
  server: serverDifference,
  ...options
}: TestGatewayOptions) {
  const log: string[] = [];
  const slow: SlowRequest[] = [];
  const logger = createLogger('gateway', 'debug', { write: (line) => void log.push(line) });
  const endpoints = options.endpoints ?? contractEndpoints;
  const nowhere = Object.fromEntries(endpoints.map(({ service }) => [service, 'http://127.0.0.1:1']));
  const { gateway: _, ...services } = { ...nowhere, ...options.services };
  const metrics = createGatewayMetrics(createMetrics('gateway'), endpoints, Object.keys(services));
  const keyServer = await startJwksServer(testKey);
  const keys = createJwksClient(keyServer.url, logger);
  const redis = redisUrl === undefined ? undefined : createRedis(redisUrl, logger);
  if (redis) (redis as Redis).options.commandTimeout = redisTimeout;
  const unlimited = { count: async () => undefined, countBadToken: async () => undefined };
  const { app, configureServer, stop } = createGateway({
    publicUrl: issuer,
    tokens: createTokenVerifier(issuer, keys, { isRevoked: () => false }),
    limits: redis ? createRateLimits(redis, endpoints, scale, metrics, logger) : unlimited,
    corsOrigins: [],
    trustedProxies: [],
    slowRequestMs: 500,
    logger,
    metrics,
    slowLog: { request: (row) => void slow.push(row), query: () => undefined, close: async () => undefined },
    ...options,
    services,
    timeouts: { ...timeouts, ...options.timeouts },
  });
  const server = createServer({ ...serverOptions, ...serverDifference }, app);
  configureServer(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log,
    slow,
    metrics,
    redis,
    async close() {
      stop();
      await keys.close();
      keyServer.stop();
      redis?.disconnect();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

export type TestGateway = Awaited<ReturnType<typeof startGateway>>;
