import { HttpError, type Handler } from '@content-platform/chassis';
import type { me as contract } from '@content-platform/contract';
import type { UserStore } from '../user-store.ts';

export function me({ users }: { users: UserStore }): Handler<typeof contract> {
  return async ({ caller }) => {
    const user = await users.findById(caller.id);
    // The token outlives the user's right to it by at most its lifetime.
    if (!user || user.disabled) {
      throw new HttpError(401, 'invalid_token', 'The user of this access token is gone.', undefined, {
        headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
      });
    }
    const { id, email, name, roles, suborg, createdAt } = user;
    return {
      status: 200,
      body: {
        id,
        email,
        name,
        roles,
        created_at: createdAt.toISOString(),
        ...(suborg === null ? {} : { suborg }),
      },
    };
  };
}
