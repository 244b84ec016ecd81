import type { Handler } from '@content-platform/chassis';
import { pulseSignOut as contract } from '@content-platform/contract';
import type { AuthClient } from '../access/auth-client.ts';
import type { Cookie } from '../access/cookie.ts';
import type { OriginCheck } from '../access/same-origin.ts';
import type { Sessions } from '../access/sessions.ts';
import { fromOf } from '../access/viewers.ts';
import { withPages } from '../pages/send.ts';

export interface SignOutDeps {
  auth: AuthClient;
  sessions: Sessions;
  cookie: Cookie;
  checkOrigin: OriginCheck;
}

export function pulseSignOut({ auth, sessions, cookie, checkOrigin }: SignOutDeps): Handler<typeof contract> {
  return withPages<typeof contract>(contract, async (call) => {
    checkOrigin(call.header);
    const value = cookie.read(call.header('cookie'));
    const from = fromOf(call);
    const token = value && (await sessions.tokenOf(value, from).catch(() => undefined));
    if (token) await auth.logOut(token, from);
    if (value) sessions.end(value);
    return { status: 303, headers: { Location: '/pulse', 'Set-Cookie': cookie.take() } };
  });
}
