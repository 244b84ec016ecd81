import { timingSafeEqual } from 'node:crypto';
import type { Router } from 'express';
import { z } from 'zod';
import { id, idSegment, multiLineText } from '@content-platform/contract';
import {
  createInternalEndpoints,
  HttpError,
  type Logger,
  type TokenVerifier,
} from '@content-platform/chassis';
import { accessTokenLifetime } from './access-tokens.ts';
import { sha256 } from './sessions/opaque-token.ts';
import type { createRevocationFeed } from './sessions/revocation-feed.ts';
import type { Stores } from './stores.ts';

const after = z
  .string()
  .regex(/^\d{1,16}$/)
  .transform(Number);
const revocationQuery = z.object({ after, keys: z.literal('true').optional(), known: z.string().optional() });
const feedQuery = z.strictObject({ after });
const userQuery = z.union([
  z.strictObject({ email: multiLineText(1, 320).normalize('NFC') }),
  z.strictObject({ id: idSegment }),
]);

/** Events that another service may add, each with the name of that service. A service cannot forge other entries. */
const writers = { letter_read: 'letters', failed_jobs_deleted: 'content-cache' } as const;
const auditEntry = z.strictObject({
  event: z.enum(Object.keys(writers) as (keyof typeof writers)[]),
  actor: z.string().regex(/^(user:[1-9]\d{0,15}|client:[a-z][a-z0-9-]{0,63})$/),
  address: z.union([z.ipv4(), z.ipv6()]),
  user_id: id.optional(),
  details: z.record(z.string(), z.unknown()),
});

interface InternalDeps {
  /** Stores on their own connections, so that other processes learn of a logout in time, even during many logins. */
  feeds: Pick<Stores, 'revocations' | 'deletedUsers'>;
  revocationFeed: ReturnType<typeof createRevocationFeed>;
  users: Stores['users'];
  audit: Stores['audit'];
  serviceSecrets: readonly string[];
  issueToken: (service: string) => string;
  verifier: TokenVerifier;
  logger: Logger;
}

/** Returns the service whose `<name>:<secret>` pair the Authorization header contains. */
function serviceOf(authorization = '', pairs: readonly string[]): string | undefined {
  const [, encoded = ''] = /^Basic (\S+)$/i.exec(authorization) ?? [];
  const given = sha256(Buffer.from(encoded, 'base64').toString());
  return pairs.find((pair) => timingSafeEqual(sha256(pair), given))?.split(':')[0];
}

/**
 * Serves the internal listener. Except for the first two endpoints, the caller needs the token of a service.
 *
 * - `GET /revocations?after=<id>`: the revocations after this id; with `&keys=true` also the kids of the valid signing
 *   keys, so that a leaked key is refused within a second; with `&known=<version>` the kids and a version. While the
 *   newest version is `known`, the reply waits up to 2 s.
 * - `POST /service-token` with the pair of a service as Basic credentials: `{token, expires_in}`, or 401.
 * - `GET /ended-sessions?after=<id>`: up to 1,000 sessions that ended after this id, in the last 30 days.
 * - `GET /deleted-users?after=<position>`: up to 1,000 users after it. The caller has erased those up to this position.
 * - `GET /users?email=<address>` or `?id=<id>`: `{id}`, or 404. Emails are compared as in a login.
 * - `POST /audit {event, actor, address, user_id?, details}`: 204, or 403 for an event of another service.
 */
export function createInternal(deps: InternalDeps): Router {
  const { feeds, revocationFeed, users, audit, serviceSecrets, issueToken, verifier, logger } = deps;
  const { revocations, deletedUsers } = feeds;
  const { router, serve } = createInternalEndpoints(verifier, logger);
  serve('GET', '/revocations', {
    schema: revocationQuery,
    isOpen: true,
    answer: async ({ after, keys: withKeys, known }) => {
      if (known !== undefined) return revocationFeed.readNext(after, known);
      const { keys, version: _, ...page } = await revocationFeed.read(after);
      return { ...page, ...(withKeys && { keys }) };
    },
  });
  router.post('/service-token', (request, response) => {
    const service = serviceOf(request.get('authorization'), serviceSecrets);
    if (service === undefined) return void response.status(401).end();
    response.set('Cache-Control', 'no-store');
    response.json({ token: issueToken(service), expires_in: accessTokenLifetime });
  });
  serve('GET', '/ended-sessions', {
    schema: feedQuery,
    answer: ({ after }) => revocations.listEndedSessions(after),
  });
  serve('GET', '/deleted-users', {
    schema: feedQuery,
    answer: ({ after }, reader) => deletedUsers.confirmAndList(after, reader),
  });
  serve('GET', '/users', {
    schema: userQuery,
    answer: async (by) => {
      const user = await ('email' in by ? users.findByEmail(by.email) : users.findById(by.id));
      if (!user) throw new HttpError('not_found', 'User not found.');
      return { id: user.id };
    },
  });
  serve('POST', '/audit', {
    schema: auditEntry,
    answer: async ({ user_id: userId, ...entry }, service) => {
      if (writers[entry.event] !== service)
        throw new HttpError('insufficient_scope', `${service} may not add ${entry.event}.`);
      await audit.add({ ...entry, userId });
      return undefined;
    },
  });
  return router;
}
