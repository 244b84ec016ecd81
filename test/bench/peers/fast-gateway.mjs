// fast-gateway with middlewares: fast-jwt (with a cache of verified tokens), express-rate-limit, prom-client and a log
// line by pino.
import { rateLimit } from 'express-rate-limit';
import gateway from 'fast-gateway';
import { Histogram, collectDefaultMetrics } from 'prom-client';
import { RedisStore } from 'rate-limit-redis';
import * as settings from './settings.mjs';

const { hasDuties, limit, logger, prefix, route } = settings;

function observe() {
  collectDefaultMetrics();
  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: "Time from the request's head to the end of the reply",
    labelNames: ['method', 'route', 'status'],
    buckets: settings.buckets,
  });
  return (request, response, next) => {
    const start = performance.now();
    const id = settings.requestId(request.headers['x-request-id']);
    request.headers['x-request-id'] = id;
    response.setHeader('x-request-id', id);
    response.once('finish', () => {
      const ms = performance.now() - start;
      const { method } = request;
      const status = response.statusCode;
      duration.observe({ method, route, status }, ms / 1000);
      logger.info({ request_id: id, method, route, status, ms: Math.round(ms) }, 'request');
    });
    next();
  };
}

function authenticate() {
  const verify = settings.verifierOfTokens();
  return (request, response, next) => {
    try {
      request.user = verify(request);
    } catch {
      response.statusCode = 401;
      return response.end();
    }
    next();
  };
}

function limitRate() {
  const redis = settings.connectRedis();
  return rateLimit({
    windowMs: limit.seconds * 1000,
    limit: limit.requests,
    keyGenerator: ({ user }) => user.sub,
    store: new RedisStore({ prefix: 'fast-gateway:', sendCommand: (...args) => redis.call(...args) }),
    validate: false,
  });
}

const target = { prefix, prefixRewrite: prefix, target: settings.upstream };
await gateway({
  routes: [
    hasDuties
      ? { ...target, methods: ['GET'], middlewares: [observe(), authenticate(), limitRate()] }
      : target,
  ],
}).start(settings.port, '127.0.0.1');
