import { Router } from 'express';
import { z } from 'zod';
import type { Database } from '@content-platform/chassis';
import { revocationsAfter } from './revocations.ts';

const after = z
  .string()
  .regex(/^\d{1,16}$/)
  .transform(Number);

/** What the other processes ask, on the internal listener: `/revocations?after=<id>`, twice a second each. */
export function createInternal(query: Database['query']): Router {
  const router = Router();
  router.get('/revocations', (request, response) => {
    const asked = after.safeParse(request.query['after']);
    if (!asked.success) return void response.status(422).end();
    revocationsAfter(query, asked.data).then(
      (page) => response.json(page),
      // Those who ask say so in their logs.
      () => response.status(503).end(),
    );
  });
  return router;
}
