import { type Caller, page, type Handler } from '@content-platform/chassis';
import type { listSessions as contract, Query } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';
import { toSession } from '../replies.ts';
import type { SessionStore } from '../sessions/session-store.ts';

/** Returns a page of the user's sessions; `current` marks the one of the caller. */
export function pageOfSessions(
  sessions: SessionStore,
  userId: number,
  caller: Caller,
  { limit, cursor }: Query<typeof contract>,
) {
  return page(
    limit,
    (rows) => sessions.list(userId, cursor, rows),
    (session) => toSession(session, caller),
  );
}

export function listSessions({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller, query }) => ({
    status: 200,
    body: await pageOfSessions(database.sessions, caller.id, caller, query),
  });
}
