import { PlatformError } from './errors.ts';
import { withRetries } from './retry.ts';
import type { SendOnce } from './send.ts';
import { orAborted, withLimit } from './signals.ts';

/** Keeps the tokens. `localStorage` is one; the functions may also return promises. */
export interface TokenStorage {
  getItem(key: string): string | null | undefined | Promise<string | null | undefined>;
  setItem(key: string, value: string): void | Promise<void>;
  removeItem(key: string): void | Promise<void>;
}

export interface Tokens {
  token: string;
  refreshToken: string;
  /** Time in ms since 1970, by the clock of this machine. */
  expiresAt: number;
  /** ID of the login, which refreshes keep. Undefined: an earlier version of this package stored the tokens. */
  login?: string | undefined;
}

interface Options {
  /** Undefined: the tokens are kept in memory. */
  storage: TokenStorage | undefined;
  key: string;
  sendOnce: SendOnce;
  /** Called when the platform has ended the session. */
  onLogout: (reason: PlatformError) => void;
}

const lockLimitMs = 30_000;
const refreshLimitMs = 8_000;
/** The platform accepts a replaced refresh token for 10 s more. */
const repeatRefreshMs = 9_000;

/** Not `randomUUID`, which browsers have on https only. */
export const randomKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');

export const tokensOf = (
  token: string,
  refreshToken: string,
  expiresInSeconds: number,
  login: string | undefined = randomKey(),
): Tokens => ({ token, refreshToken, expiresAt: Date.now() + expiresInSeconds * 1000, login });

function memory(): TokenStorage {
  const values = new Map<string, string>();
  return {
    getItem: (key) => values.get(key),
    setItem: (key, value) => void values.set(key, value),
    removeItem: (key) => void values.delete(key),
  };
}

const notLoggedIn = () =>
  new PlatformError({ code: 'token_required', status: 401, message: 'Not logged in.' });

const isSessionEnded = (error: unknown): error is PlatformError =>
  error instanceof PlatformError && error.code === 'invalid_grant';

/** Keeps the tokens of a session, and refreshes them once for all callers and tabs. */
export function createSession({ storage, key, sendOnce, onLogout }: Options) {
  const store = storage ?? memory();

  async function read(): Promise<Tokens | undefined> {
    const text = await store.getItem(key);
    try {
      return text ? (JSON.parse(text) as Tokens) : undefined;
    } catch {
      // A crash can cut off the text of a file. Users must be able to log in again.
      return undefined;
    }
  }
  async function readOf(login: string | undefined): Promise<Tokens | undefined> {
    const tokens = await read();
    if (login !== undefined && tokens?.login !== login) throw notLoggedIn();
    return tokens;
  }
  /** Counts logins, refreshes and logouts: `read` may return what one of them is replacing. */
  let changes = 0;
  async function save(tokens: Tokens): Promise<void> {
    changes += 1;
    await store.setItem(key, JSON.stringify(tokens));
  }
  /** Forgets the tokens, unless they are of another login. */
  async function clear(login: string | undefined): Promise<void> {
    if ((await read())?.login !== login) return;
    changes += 1;
    await store.removeItem(key);
  }

  /** Returns new tokens. Repeats a request only while the platform still accepts its refresh token. */
  async function refresh({ refreshToken, login }: Tokens): Promise<Tokens> {
    const until = performance.now() + repeatRefreshMs;
    const input = { grant_type: 'refresh_token', refresh_token: refreshToken } as const;
    const { body } = await withRetries(
      undefined,
      (_, pauseMs) => performance.now() + pauseMs < until,
      () => sendOnce('token', input, { timeoutMs: refreshLimitMs }),
    );
    return tokensOf(body.access_token, body.refresh_token ?? refreshToken, body.expires_in, login);
  }

  /** Replaces the stored tokens, unless a login, a logout or another tab has replaced the refused token. */
  async function replace(refused: string): Promise<string> {
    const known = changes;
    const before = await read();
    if (!before) throw notLoggedIn();
    if (before.token !== refused) return before.token;
    const next = await refresh(before).catch((error: unknown) => {
      if (isSessionEnded(error)) return error;
      throw error;
    });
    const now = await read();
    if (now?.token !== refused || changes !== known) return replace(refused);
    if (!(next instanceof PlatformError)) {
      await save(next);
      return next.token;
    }
    await clear(now.login);
    onLogout(next);
    throw next;
  }

  /** Runs `work` in one tab at a time, if there are locks. A lock per login, as a server has clients of many users. */
  async function exclusively<T>(work: () => Promise<T>): Promise<T> {
    const locks = storage && globalThis.navigator?.locks;
    if (!locks) return work();
    const name = `${key} ${(await read())?.login}`;
    return withLimit(lockLimitMs, undefined, (signal) => locks.request(name, { signal }, work) as Promise<T>);
  }

  let replacing: Promise<string> | undefined;
  /** Returns an access token other than the refused one. */
  function renew(refused: string, signal?: AbortSignal): Promise<string> {
    replacing ??= exclusively(() => replace(refused)).finally(() => (replacing = undefined));
    return orAborted(replacing, signal);
  }

  return {
    read,
    save,
    clear,
    renew,
    /** Returns an access token that has not expired; undefined without a login. Throws if it is not of this `login`. */
    async token(login: string | undefined, signal?: AbortSignal): Promise<string | undefined> {
      const tokens = await orAborted(readOf(login), signal);
      if (!tokens || tokens.expiresAt > Date.now()) return tokens?.token;
      await renew(tokens.token, signal);
      return (await orAborted(readOf(login), signal))?.token;
    },
  };
}
