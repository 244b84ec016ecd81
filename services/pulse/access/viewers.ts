import { authorize, bearerToken, HttpError, type TokenVerifier } from '@content-platform/chassis';
import type { ClientHeaders } from './auth-client.ts';
import type { Cookie } from './cookie.ts';
import type { Sessions } from './sessions.ts';

/** The parts of a request that identify the viewer. */
interface Sender {
  header(name: string): string | undefined;
  address: string;
}

/** Returns the headers that tell auth the viewer's IP address and browser. */
export function clientHeadersOf({ header, address }: Sender): ClientHeaders {
  const headers = { 'User-Agent': header('user-agent'), 'X-Request-Id': header('x-request-id') };
  const known = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { ...Object.fromEntries(known), 'X-Forwarded-For': address };
}

/** Identifies the viewer of a request by the access token or the cookie. */
export function createViewers(tokens: TokenVerifier, sessions: Sessions, cookie: Cookie) {
  async function bySession(sender: Sender, value: string) {
    const token = await sessions.tokenOf(value, clientHeadersOf(sender));
    const ended = () => {
      sessions.end(value);
      return new HttpError('invalid_token', 'You were signed out. Sign in again.');
    };
    if (token === undefined) throw ended();
    const caller = await tokens.verify(token).catch((error: unknown) => {
      throw error instanceof HttpError && error.status === 401 ? ended() : error;
    });
    return { caller, token };
  }

  /** Returns the viewer. Throws 401 without a token or a session, 403 without the scope pulse:view. */
  return async (sender: Sender) => {
    const authorization = sender.header('authorization');
    const value = cookie.read(sender.header('cookie'));
    const byToken = async (token: string) => ({ token, caller: await tokens.verify(token) });
    const viewer =
      authorization === undefined && value
        ? await bySession(sender, value)
        : await byToken(bearerToken(authorization));
    authorize(viewer.caller, { access: 'pulse:view' });
    return viewer;
  };
}
export type Viewers = ReturnType<typeof createViewers>;
export type Viewer = Awaited<ReturnType<Viewers>>;
