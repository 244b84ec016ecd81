import express, { Router, type ErrorRequestHandler } from 'express';
import { z } from 'zod';
import {
  beginRequestSpan,
  endRequestSpan,
  inSpan,
  type Logger,
  requestId,
  requireService,
  runInContext,
  type TokenVerifier,
} from '@content-platform/chassis';
import { id, multiLineText } from '@content-platform/contract';
import type { DeviceStore } from './device-store.ts';

const route = '/unregister';
const unregistration = z.strictObject({ user_id: id, token: multiLineText(1, 4096) });

/**
 * Serves `POST /unregister {user_id, token}` for auth's logout, on the internal listener. 204 also for an unknown device;
 * 401 or 403 without the token of a service.
 */
export function createInternal(devices: DeviceStore, tokens: TokenVerifier, logger: Logger): Router {
  const router = Router();
  router.post(route, requireService(tokens), express.json({ limit: 65_536 }), (request, response) => {
    const parsed = unregistration.safeParse(request.body);
    if (!parsed.success) return void response.status(422).end();
    const { user_id: userId, token } = parsed.data;
    const context = {
      requestId: requestId(request.get('x-request-id')),
      route,
      database: { calls: 0, ms: 0 },
    };
    const span = beginRequestSpan('POST', route, request.headers);
    response.once('close', () => endRequestSpan(span, response.statusCode));
    const unregister = () =>
      devices.unregister(userId, token).then(
        () => response.status(204).end(),
        (error: unknown) => {
          logger.error({ error, route }, 'request failed');
          response.status(503).end();
        },
      );
    void runInContext(context, () => inSpan(span, unregister));
  });
  const refuse: ErrorRequestHandler = (_error, _request, response, _next) => void response.status(400).end();
  router.use(route, refuse);
  return router;
}
