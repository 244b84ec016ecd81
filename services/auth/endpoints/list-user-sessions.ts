import type { Handler } from '@content-platform/chassis';
import type { listUserSessions as contract } from '@content-platform/contract';
import { findUser } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { pageOfSessions } from './list-sessions.ts';

export function listUserSessions({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller, params: { id }, query }) => {
    await findUser(database.users, id);
    return { status: 200, body: await pageOfSessions(database.sessions, id, caller, query) };
  };
}
