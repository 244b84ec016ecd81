import { authorize, HttpError, type Handler } from '@content-platform/chassis';
import { pulseSignIn as contract } from '@content-platform/contract';
import { clientHeadersOf } from '../access/viewers.ts';
import type { PulseContext } from '../context.ts';
import { withPages } from '../pages/send.ts';

export function pulseSignIn(context: PulseContext): Handler<typeof contract> {
  const { auth, tokens, sessions, cookie, checkOrigin } = context;
  return withPages<typeof contract>(contract, async (call) => {
    checkOrigin(call.header);
    const from = clientHeadersOf(call);
    const login = await auth.logIn(call.body, from);
    try {
      if (login.mustChangePassword) {
        throw new HttpError(
          'password_change_required',
          'This temporary password was valid for one login only. Request another one, log in to the platform with it and choose your own password. Then sign in here.',
        );
      }
      authorize(await tokens.verify(login.accessToken), { access: 'pulse:view' });
    } catch (refusal) {
      // The session would never be used.
      await auth.logOut(login.accessToken, from);
      throw refusal;
    }
    const value = sessions.open(login);
    return { status: 303, headers: { Location: '/pulse', 'Set-Cookie': cookie.set(value) } };
  });
}
