import type { OutgoingHttpHeaders, RequestListener, Server } from 'node:http';
import { endpoints as contractEndpoints, health, type Endpoint } from '@content-platform/contract';
import { beginSpan, inSpan, methodLabel, requestId, type TokenVerifier } from '@content-platform/chassis';
import {
  authenticate,
  cors,
  createAllowlist,
  createBodyReader,
  createCorsHeaders,
  findEndpoint,
  securityHeaders,
} from './guard/access.ts';
import { createClientAddress, createHeadCheck, createProxyCheck, readTarget } from './guard/request-head.ts';
import { createLoadShedding } from './guard/load-shedding.ts';
import type { RateLimits } from './guard/rate-limit.ts';
import { createObserver, type ObserveOptions } from './observe.ts';
import { createRefusal } from './replies/errors.ts';
import { createOwnEndpoints } from './replies/own-endpoints.ts';
import { answerProtocolErrors } from './replies/protocol-errors.ts';
import type { GatewayRequest, GatewayResponse, Step } from './request-context.ts';
import { keepProxyConnections, timeouts as defaultTimeouts, type Timeouts } from './timeouts.ts';
import { createResolve, type Resolve } from './upstream/connect.ts';
import { createUpstream } from './upstream/upstream.ts';

export interface GatewayOptions extends ObserveOptions {
  publicUrl: string;
  services: Readonly<Record<string, string>>;
  tokens: TokenVerifier;
  limits: RateLimits;
  /** Browsers use https for the subdomains of `publicUrl`, too; default false. */
  hstsIncludeSubdomains?: boolean;
  corsOrigins: readonly string[];
  trustedProxies: readonly string[];
  timeouts?: Timeouts;
  /** Limit of requests at one service; default 512. */
  maxRequests?: number;
  resolve?: Resolve;
  endpoints?: readonly Endpoint[];
}

/** Load shedding exempts /health up to this number of requests in a turn of the event loop: more could be a flood of it. */
const maxPerTurnForHealth = 32;

/** Creates the context of a request. Load shedding runs earlier, so that a refusal costs little. */
function startContext(response: GatewayResponse, startedAt: number, headers: OutgoingHttpHeaders): void {
  const { method, headers: sent } = response.req;
  const id = requestId(sent['x-request-id'] as string | undefined);
  response.locals = {
    requestId: id,
    span: beginSpan(methodLabel(method), { kind: 'server', link: sent, beganAt: startedAt }),
    startedAt,
    replyHeaders: { ...headers, 'x-request-id': id },
    address: '',
    path: '',
  };
}

/** Creates the step that answers the request. Throws if an endpoint has no step. */
function answerEndpoint(
  endpoints: readonly Endpoint[],
  stepOf: (endpoint: Endpoint) => Step | undefined,
): Step {
  const answers = new Map(endpoints.map((endpoint) => [endpoint, stepOf(endpoint)]));
  for (const [{ name }, answer] of answers) if (!answer) throw new Error(`endpoint ${name} has no handler`);
  return (request, response) => answers.get(response.locals.endpoint!)!(request, response);
}

/** Creates the gateway: it checks every request and sends accepted requests to the service that owns the endpoint. */
export function createGateway(options: GatewayOptions) {
  const { publicUrl, logger, metrics, limits, maxRequests = 512 } = options;
  const { timeouts = defaultTimeouts, endpoints = contractEndpoints } = options;
  const refuse = createRefusal(logger, timeouts.drain);
  const corsHeaders = createCorsHeaders(options.corsOrigins);
  const allowlist = createAllowlist(endpoints);
  const head = createHeadCheck();
  const shedding = createLoadShedding({
    begin,
    metrics,
    corsHeaders,
    drainMs: timeouts.drain,
    // A malformed head gets its 400 even under overload, because this reply ends the connection.
    isExempt: (request, begun) =>
      head.isMalformed(request) || (request.url === health.path && begun < maxPerTurnForHealth),
    areConnectionsShared: options.trustedProxies.length > 0,
  });
  const resolve = createResolve(options.resolve);
  const shared = { publicUrl, timeouts, maxRequests, resolve, logger, metrics, refuse };
  const upstreams = new Map(
    Object.entries(options.services).map(([name, address]) => [
      name,
      createUpstream(name, new URL(address), shared),
    ]),
  );
  const ownEndpoints = createOwnEndpoints(publicUrl, upstreams, refuse);
  const headers = securityHeaders(publicUrl, options.hstsIncludeSubdomains ?? false);

  /** The steps of a request, in this order. The order of the errors is part of the contract. */
  const steps: readonly Step[] = [
    createObserver(options),
    createClientAddress(options.trustedProxies),
    head.refuse, // 400
    readTarget, // 400
    cors(corsHeaders, allowlist),
    findEndpoint(allowlist), // 404, 405
    authenticate(options.tokens, limits), // 401, 403, 429 for bad tokens, 503
    (_request, response) => limits.count(response), // 429
    createBodyReader(), // 400, 413, 415, 503
    answerEndpoint(endpoints, ({ name, service }) => ownEndpoints[name] ?? upstreams.get(service)?.forward),
  ];

  async function run(request: GatewayRequest, response: GatewayResponse): Promise<void> {
    try {
      for (const step of steps) {
        const result = step(request, response);
        // Waiting for a step that is synchronous would cost a turn of the microtask queue.
        if ((result instanceof Promise ? await result : result) === false) return;
      }
    } catch (error) {
      refuse(response, error);
    }
  }

  function receive(request: GatewayRequest, response: GatewayResponse): void {
    if (head.inspect(request, response) !== false) shedding.admit(request, response); // 503
  }

  function begin(response: GatewayResponse, arrivedAt: number): void {
    startContext(response, arrivedAt, headers);
    void inSpan(response.locals.span, () => run(response.req, response));
  }

  return {
    app: receive as RequestListener,
    /** Installs protocol-error handlers and the idle timeout; call it before the server listens. */
    configureServer(server: Server): void {
      server.setTimeout(timeouts.idle);
      keepProxyConnections(server, createProxyCheck(options.trustedProxies), timeouts.proxyKeepAlive);
      answerProtocolErrors(server, logger, timeouts.drain, refuse);
    },
    stop() {
      shedding.stop();
      for (const upstream of upstreams.values()) upstream.stop();
    },
  };
}
