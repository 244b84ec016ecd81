// fastify with @fastify/http-proxy, @fastify/jwt (with a cache of verified tokens), @fastify/rate-limit and
// fastify-metrics. Writes one log line per request instead of fastify's two.
import proxy from '@fastify/http-proxy';
import jwt from '@fastify/jwt';
import rateLimit from '@fastify/rate-limit';
import Fastify, { LogController } from 'fastify';
import metrics from 'fastify-metrics';
import * as settings from './settings.mjs';

const { hasDuties, limit, prefix, upstream } = settings;
const app = Fastify({
  ...(hasDuties && {
    loggerInstance: settings.logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: (request) => settings.requestId(request.headers['x-request-id']),
  }),
});

if (hasDuties) {
  await app.register(metrics.default ?? metrics, {
    routeMetrics: {
      enabled: { histogram: true, summary: false },
      overrides: { histogram: { buckets: settings.buckets } },
    },
  });
  await app.register(jwt, {
    secret: { public: settings.publicKeyPem },
    verify: {
      algorithms: ['RS256'],
      allowedIss: settings.claims.issuer,
      allowedAud: settings.claims.audience,
      cache: true,
    },
  });
  await app.register(rateLimit, {
    max: limit.requests,
    timeWindow: limit.seconds * 1000,
    redis: settings.connectRedis(),
    hook: 'preHandler',
    keyGenerator: ({ user }) => user.sub,
  });
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    await request.jwtVerify();
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request;
    const fields = { method, route: routeOptions.url, status: reply.statusCode };
    request.log.info({ ...fields, ms: Math.round(reply.elapsedTime) }, 'request');
  });
}

await app.register(proxy, {
  upstream,
  disableRequestLogging: true,
  ...(hasDuties
    ? {
        prefix,
        rewritePrefix: prefix,
        httpMethods: ['GET'],
        replyOptions: { rewriteRequestHeaders: ({ id }, headers) => ({ ...headers, 'x-request-id': id }) },
      }
    : {}),
});

await app.listen({ port: settings.port, host: '127.0.0.1' });
