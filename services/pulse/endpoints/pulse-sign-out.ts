import type { Handler } from '@content-platform/chassis';
import { pulseSignOut as contract } from '@content-platform/contract';
import { clientHeadersOf } from '../access/viewers.ts';
import type { PulseContext } from '../context.ts';
import { withPages } from '../pages/send.ts';

export function pulseSignOut(context: PulseContext): Handler<typeof contract> {
  const { auth, sessions, cookie, checkOrigin } = context;
  return withPages<typeof contract>(contract, async (call) => {
    checkOrigin(call.header);
    const value = cookie.read(call.header('cookie'));
    const from = clientHeadersOf(call);
    const token = value && (await sessions.tokenOf(value, from).catch(() => undefined));
    if (token) await auth.logOut(token, from);
    if (value) sessions.end(value);
    return { status: 303, headers: { Location: '/pulse', 'Set-Cookie': cookie.clear() } };
  });
}
