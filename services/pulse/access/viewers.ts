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
    // If the token is refused, tries once with a new one: `rotate-keys --now` ends access tokens but no sessions.
    for (let refused: string | undefined, attempt = 1; attempt <= 2; attempt += 1) {
      const token = await sessions.tokenOf(value, clientHeadersOf(sender), refused);
      if (token === undefined) break;
      try {
        return { caller: await tokens.verify(token), token };
      } catch (error) {
        if (!(error instanceof HttpError && error.status === 401)) throw error;
        refused = token;
      }
    }
    sessions.end(value);
    throw new HttpError('invalid_token', 'You were signed out. Sign in again.');
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
export type Viewer = Awaited<ReturnType<ReturnType<typeof createViewers>>>;
