import type { Router } from 'express';
import { z } from 'zod';
import { createInternalEndpoints, type Logger, type TokenVerifier } from '@content-platform/chassis';
import { id, multiLineText } from '@content-platform/contract';
import type { DeviceStore } from './device-store.ts';

const unregistration = z.strictObject({ user_id: id, token: multiLineText(1, 4096) });

/** Serves `POST /unregister {user_id, token}` for auth's logout, on the internal listener. 204 also for an unknown device. */
export function createInternal(devices: DeviceStore, tokens: TokenVerifier, logger: Logger): Router {
  const { router, serve } = createInternalEndpoints(tokens, logger);
  serve('POST', '/unregister', {
    schema: unregistration,
    answer: async ({ user_id: userId, token }) => void (await devices.unregister(userId, token)),
  });
  return router;
}
