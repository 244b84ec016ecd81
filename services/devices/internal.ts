import type { Router } from 'express';
import { z } from 'zod';
import {
  createInternalEndpoints,
  jsonArray,
  type Logger,
  rowsOf,
  serveExport,
  type TokenVerifier,
} from '@content-platform/chassis';
import { type Device, id, multiLineText } from '@content-platform/contract';
import type { DeviceStore } from './device-store.ts';

const unregistration = z.strictObject({ user_id: id, token: multiLineText(1, 4096) });

/** Serves the export, and `POST /unregister {user_id, token}` for auth's logout: 204 also for an unknown device. */
export function createInternal(devices: DeviceStore, tokens: TokenVerifier, logger: Logger): Router {
  const endpoints = createInternalEndpoints(tokens, logger);
  endpoints.serve('POST', '/unregister', {
    schema: unregistration,
    answer: async ({ user_id: userId, token }) => void (await devices.unregister(userId, token)),
  });
  serveExport(endpoints, async (userId) =>
    jsonArray(await rowsOf<Device>((last) => devices.listForExport(userId, last?.id, 100))),
  );
  return endpoints.router;
}
