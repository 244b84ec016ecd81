// express with http-proxy-middleware, jsonwebtoken, express-rate-limit, pino-http and express-prom-bundle, used as
// documented. Verifies the token of each request.
import { Agent } from 'node:http';
import express from 'express';
import promBundle from 'express-prom-bundle';
import { rateLimit } from 'express-rate-limit';
import { createProxyMiddleware } from 'http-proxy-middleware';
import jwt from 'jsonwebtoken';
import { pinoHttp } from 'pino-http';
import { RedisStore } from 'rate-limit-redis';
import * as settings from './settings.mjs';

const app = express();
const proxy = createProxyMiddleware({
  target: settings.upstream,
  agent: new Agent({ keepAlive: true, maxSockets: 64 }),
  xfwd: true,
});

function nameRequest(request, response, next) {
  request.id = settings.requestId(request.headers['x-request-id']);
  request.headers['x-request-id'] = request.id;
  response.setHeader('X-Request-Id', request.id);
  next();
}

function authenticate(request, response, next) {
  const [scheme, token] = (request.headers.authorization ?? '').split(' ');
  if (scheme !== 'Bearer') return response.status(401).json({ error: 'token_required' });
  try {
    request.user = jwt.verify(token, settings.publicKey, { algorithms: ['RS256'], ...settings.claims });
  } catch {
    return response.status(401).json({ error: 'invalid_token' });
  }
  next();
}

if (settings.hasDuties) {
  const redis = settings.connectRedis();
  const normalizePath = () => settings.route;
  app.use(nameRequest);
  app.use(pinoHttp({ genReqId: (request) => request.id }));
  app.use(promBundle({ includeMethod: true, includePath: true, normalizePath, buckets: settings.buckets }));
  app.get(
    settings.route,
    authenticate,
    rateLimit({
      windowMs: settings.limit.seconds * 1000,
      limit: settings.limit.requests,
      keyGenerator: ({ user }) => user.sub,
      store: new RedisStore({ prefix: 'express:', sendCommand: (...args) => redis.call(...args) }),
    }),
    proxy,
  );
} else app.use(proxy);

app.listen(settings.port, '127.0.0.1');
