import {
  authorize,
  bearerToken,
  HttpError,
  type Caller,
  type TokenVerifier,
} from '@content-platform/chassis';
import type { From } from './auth-client.ts';
import type { Cookie } from './cookie.ts';
import type { Sessions } from './sessions.ts';

/** Who looks at the page. */
export interface Viewer {
  caller: Caller;
  /** Their access token. */
  token: string;
}

/** What of a request tells who sent it. */
export interface Sender {
  header(name: string): string | undefined;
  address: string;
}

/** Passes on whose request it is. */
export function fromOf({ header, address }: Sender): From {
  const told = { 'User-Agent': header('user-agent'), 'X-Request-Id': header('x-request-id') };
  const known = Object.entries(told).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { ...Object.fromEntries(known), 'X-Forwarded-For': address };
}

/** Finds out who sent a request, by its token or its cookie. */
export function createViewers(tokens: TokenVerifier, sessions: Sessions, cookie: Cookie) {
  async function bySession(sender: Sender, value: string): Promise<Viewer> {
    const token = await sessions.tokenOf(value, fromOf(sender));
    const ended = () => {
      sessions.end(value);
      return new HttpError(401, 'invalid_token', 'You were signed out. Sign in again.');
    };
    if (token === undefined) throw ended();
    const caller = await tokens.verify(token).catch((error: unknown) => {
      throw error instanceof HttpError && error.status === 401 ? ended() : error;
    });
    return { caller, token };
  }

  /** Throws 401 without a token or a session, 403 without the scope pulse:view. */
  return async (sender: Sender): Promise<Viewer> => {
    const authorization = sender.header('authorization');
    const value = cookie.read(sender.header('cookie'));
    let viewer: Viewer;
    if (authorization === undefined && value) viewer = await bySession(sender, value);
    else {
      const token = bearerToken(authorization);
      viewer = { token, caller: await tokens.verify(token) };
    }
    authorize(viewer.caller, { access: 'pulse:view' });
    return viewer;
  };
}
export type Viewers = ReturnType<typeof createViewers>;
