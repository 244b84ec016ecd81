import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { endpoints as contractEndpoints, type Endpoint } from '@content-platform/contract';
import {
  beginSpan,
  HttpError,
  inSpan,
  methodLabel,
  requestId,
  type Logger,
  type SlowLog,
  type TokenVerifier,
} from '@content-platform/chassis';
import { createAllowlist, findEndpoint } from './allowlist.ts';
import { authenticate } from './authenticate.ts';
import { limitBody } from './body-limit.ts';
import { createClientAddress } from './client-address.ts';
import { cors, createCorsHeaders } from './cors.ts';
import { createDocuments } from './documents.ts';
import type { Exchange, GatewayResponse, Step } from './exchange.ts';
import { showHealth } from './health.ts';
import { createInstances, type Instances, type Resolve } from './instances.ts';
import { createLoadShedding, usualLateMs } from './load-shedding.ts';
import type { GatewayMetrics } from './metrics.ts';
import { createObserver } from './observe.ts';
import { answerProtocolErrors } from './protocol-errors.ts';
import { rateLimit, type RateLimits } from './rate-limit.ts';
import { createRefusal } from './reply.ts';
import { createSecurityHeaders } from './security-headers.ts';
import { checkTarget } from './target.ts';
import { timeouts as usualTimeouts, type Timeouts } from './timeouts.ts';
import { createUpstream, maxRequests, type Upstream } from './upstream.ts';

export interface GatewayOptions {
  /** Where clients reach the gateway. */
  publicUrl: string;
  /** The address of each service of the contract. */
  services: Readonly<Record<string, string>>;
  tokens: TokenVerifier;
  limits: RateLimits;
  corsOrigins: readonly string[];
  trustedProxies: readonly string[];
  slowRequestMs: number;
  logger: Logger;
  metrics: GatewayMetrics;
  slowLog: SlowLog;
  timeouts?: Timeouts;
  /** How late the event loop may be before requests are refused. */
  mayBeLateMs?: number;
  /** DNS, where nothing else is said. */
  resolve?: Resolve;
  endpoints?: readonly Endpoint[];
}

export interface Gateway {
  app: RequestListener;
  /** Has the server's own errors answered, too, and idle clients left. Call it before the server listens. */
  prepare: (server: Server) => void;
  /** Looks after the services no more. */
  stop: () => void;
}

function malformed(message: string): HttpError {
  const headers = { Connection: 'close' };
  return new HttpError(400, 'malformed_request', message, undefined, { headers });
}

/**
 * What is wrong with a head, if anything: whoever sends it may see another end of its request than we do.
 * RFC 9112 §3.2: exactly one Host. It decides nothing here, but somebody in front may have gone by another one. Node's
 * parser takes 0.9 and 2.0, too, which no proxy in front reads as we do, and codings before `chunked`, which hide the
 * body from us; before HTTP/1.1 not even that one exists (§6.1).
 */
function checkHead({ httpVersion, headers, rawHeaders }: IncomingMessage): HttpError | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return malformed('The version must be HTTP/1.1 or HTTP/1.0.');
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0'))
    return malformed('The body must be sent plainly or chunked.');
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length;
  if (hosts === 1 || (hosts === 0 && httpVersion === '1.0')) return undefined;
  return malformed('The request must have one Host header.');
}

/** Who answers each endpoint: the gateway itself, or the service that owns it. Throws when nobody does. */
function answer(
  endpoints: readonly Endpoint[],
  own: Record<string, Step>,
  services: Record<string, Step>,
): Step {
  const steps = new Map(
    endpoints.map(({ name, service }) => {
      const step = service === 'gateway' ? own[name] : services[service];
      if (!step) throw new Error(`nobody answers ${name}`);
      return [name, step];
    }),
  );
  return (request, response, next) => steps.get(response.locals.endpoint!.name)!(request, response, next);
}

/**
 * The guard of the platform. The order on a request's way is that of the errors: 400 target, 404/405 path, 401, 403,
 * 429, 413/415 body; what has passed goes to the service that owns the endpoint.
 */
export function createGateway(options: GatewayOptions): Gateway {
  const { publicUrl, services, logger, timeouts = usualTimeouts, endpoints = contractEndpoints } = options;
  const refuse = createRefusal(logger, timeouts.drain);
  const corsHeaders = createCorsHeaders(options.corsOrigins);
  const shedding = createLoadShedding(
    options.metrics,
    corsHeaders,
    timeouts.drain,
    options.mayBeLateMs ?? usualLateMs,
  );
  const setSecurityHeaders = createSecurityHeaders(publicUrl);
  const observe = createObserver(options);
  const addressOf = createClientAddress(options.trustedProxies);
  const allowlist = createAllowlist(endpoints);
  const instances: Record<string, Instances> = {};
  const upstreams: Record<string, Upstream> = {};
  for (const [service, address] of Object.entries(services)) {
    const url = new URL(address);
    const own = createInstances(url, timeouts, maxRequests, options.resolve);
    instances[service] = own;
    upstreams[service] = createUpstream(service, url, own, { ...options, timeouts, refuse });
  }
  const own = { health: showHealth(instances), ...createDocuments(publicUrl) };

  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  const steps: Step[] = [
    cors(corsHeaders, allowlist),
    findEndpoint(allowlist),
    authenticate(options.tokens, options.limits),
    rateLimit(options.limits),
    limitBody(),
    answer(endpoints, own, upstreams),
  ];
  app.use(...(steps as RequestHandler[]));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) =>
    refuse(request, response as GatewayResponse, error),
  );

  /** Connections where a head was malformed. The parser goes on; what it finds is nobody's request for sure. */
  const ended = new WeakSet<Socket>();

  /** Before express, which parses the target as soon as it gets a request. */
  function receive(request: Request, response: GatewayResponse): void {
    if (ended.has(request.socket)) return;
    // No upgrade is made, and Node's parser throws away what came behind the request: its sender is told to begin anew.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    const complaint = checkHead(request);
    // Before anything that costs; a malformed head ends its connection all the same.
    if (!complaint && shedding.refuses(request, response)) return;
    const exchange: Exchange = {
      requestId: requestId(request.headers['x-request-id'] as string | undefined),
      // A client's trace is pointed to, and not joined: it would decide what of ours is kept, and under which id.
      span: beginSpan(methodLabel(request.method), { kind: 'server', link: request.headers }),
      startedAt: performance.now(),
      address: '',
      path: '',
    };
    response.locals = exchange;
    response.setHeader('X-Request-Id', exchange.requestId);
    setSecurityHeaders(request, response);
    observe(request, response, exchange);
    exchange.address = addressOf(request);
    if (complaint) {
      ended.add(request.socket);
      return refuse(request, response, complaint);
    }
    try {
      exchange.path = checkTarget(request.url);
    } catch (error) {
      return refuse(request, response, error);
    }
    inSpan(exchange.span, () => app(request, response));
  }

  return {
    app: (request, response) => receive(request as Request, response as GatewayResponse),
    prepare(server) {
      server.setTimeout(timeouts.idle);
      answerProtocolErrors(server, {
        logger,
        drainMs: timeouts.drain,
        refuse: (request, response, error) => refuse(request as Request, response as GatewayResponse, error),
      });
    },
    stop() {
      shedding.stop();
      for (const each of Object.values(instances)) each.stop();
    },
  };
}
