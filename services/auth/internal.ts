import { Router, type Response } from 'express';
import { z } from 'zod';
import { idSegment, multiLineText } from '@content-platform/contract';
import type { Stores } from './stores.ts';

const after = z
  .string()
  .regex(/^\d{1,16}$/)
  .transform(Number);

const userQuery = z.union([
  z.strictObject({ email: multiLineText(1, 320) }),
  z.strictObject({ id: idSegment }),
]);

function reply(response: Response, work: Promise<object | undefined>): void {
  work.then(
    (found) => (found ? response.json(found) : response.status(404).end()),
    () => response.status(503).end(),
  );
}

export interface InternalDeps {
  /** On connections of their own: other processes learn of a logout in time, also during many logins. */
  revocations: Pick<Stores['revocations'], 'listAfter'>;
  users: Pick<Stores['users'], 'findByEmail' | 'findById'>;
}

/**
 * The internal listener; 422 for an invalid query, 503 while PostgreSQL is unavailable.
 *
 * - `GET /revocations?after=<id>`: the revocations since then. Every process asks twice a second.
 * - `GET /users?email=<address>` or `?id=<id>`: `{id}`, or 404. Emails are compared as in a login.
 */
export function createInternal({ revocations, users }: InternalDeps): Router {
  const router = Router();
  router.get('/revocations', (request, response) => {
    const asked = after.safeParse(request.query['after']);
    if (!asked.success) return void response.status(422).end();
    reply(response, revocations.listAfter(asked.data));
  });
  router.get('/users', (request, response) => {
    const asked = userQuery.safeParse(request.query);
    if (!asked.success) return void response.status(422).end();
    const { data } = asked;
    const user = 'email' in data ? users.findByEmail(data.email) : users.findById(data.id);
    reply(
      response,
      user.then((found) => found && { id: found.id }),
    );
  });
  return router;
}
