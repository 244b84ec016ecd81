import type { ContentRecord, ContentSummary, Login, MediaFile, Model } from './contract.ts';
import { operations } from './contract.ts';
import { PlatformError } from './errors.ts';
import { followChanges, type FollowOptions, type FollowStep } from './follow.ts';
import { type ItemOf, itemsOf, type ListName } from './pages.ts';
import { withRetries } from './retry.ts';
import {
  type CallOptions,
  createSendOnce,
  type Fetch,
  fileOf,
  type InputOf,
  type OperationName,
  type OutputOf,
  type Reply,
  type TryOptions,
} from './send.ts';
import { createSession, randomKey, tokensOf, type TokenStorage } from './session.ts';

export interface ClientOptions {
  /** URL of the platform, for example https://api.example.com. */
  url: string;
  /** Keeps the tokens, for example `localStorage`. Default: memory. */
  storage?: TokenStorage | undefined;
  /** Called when the platform has ended the session, in the tab that notices it first: ask the user to log in. */
  onLogout?: ((reason: PlatformError) => void) | undefined;
  /** How often a request that is safe to repeat is sent again. Default: 3. */
  retries?: number | undefined;
  /** Default: the global `fetch` at each call. Not `typeof fetch`, which has further properties in Bun. */
  fetch?: Fetch | undefined;
}

/** Arguments of a call. The input may be left out if every part of it may. */
type Arguments<K extends OperationName> =
  {} extends InputOf<K>
    ? [input?: InputOf<K>, options?: CallOptions]
    : [input: InputOf<K>, options?: CallOptions];

export type Client = ReturnType<typeof createClient>;

/** If the platform asks for a longer pause, the call rejects, so that the caller decides. */
const maxPauseMs = 30_000;
const idsPerCall = 100;

/** Creates a client of one platform for one user. Throws TypeError if `url` is no URL. */
export function createClient({
  url,
  storage,
  onLogout = () => undefined,
  retries = 3,
  fetch = (url, init) => globalThis.fetch(url, init),
}: ClientOptions) {
  // In a browser the URL may be relative to the page.
  const { location } = globalThis as { location?: { href: string } };
  const base = new URL(url, location?.href).href.replace(/\/+$/, '');
  const sendOnce = createSendOnce(base, fetch);
  const session = createSession({ storage, key: `content-platform ${base}`, sendOnce, onLogout });

  /** Sends a request, and once more with a new access token if the platform refuses the first one. */
  async function sendAuthorized<K extends OperationName>(
    name: K,
    input: InputOf<K>,
    options: TryOptions,
    login?: string,
  ): Promise<Reply<OutputOf<K>>> {
    const token = operations[name].public ? undefined : await session.token(login, options.signal);
    try {
      return await sendOnce(name, input, options, token);
    } catch (error) {
      const isRefused = error instanceof PlatformError && error.code === 'invalid_token';
      if (!isRefused || token === undefined) throw error;
      await session.renew(token, options.signal);
      return sendOnce(name, input, options, await session.token(login, options.signal));
    }
  }

  const currentLogin = async () => (await session.read())?.login;

  /**
   * Sends a request, and repeats it after temporary errors if repeating is safe. Throws `token_required` if another
   * login replaces `loginAtStart`, the ID of the login when a series of requests began. Default: the current login.
   */
  async function sendSafely<K extends OperationName>(
    name: K,
    input: InputOf<K>,
    options: CallOptions = {},
    loginAtStart?: Promise<string | undefined>,
  ): Promise<Reply<OutputOf<K>>> {
    if (!Object.hasOwn(operations, name)) throw new TypeError(`The platform has no operation ${name}.`);
    const { method, key } = operations[name];
    // The same key in every try, so that the platform carries out only one of them.
    const headers = new Headers(options.headers);
    if (key && !headers.has('Idempotency-Key')) headers.set('Idempotency-Key', randomKey());
    const maxRetries = method === 'GET' || key ? retries : 0;
    const login = await (loginAtStart ?? currentLogin());
    // Before the loop, because a refresh repeats its own request: offline, the call would reject after 40 s.
    if (!operations[name].public) await session.token(login, options.signal);
    return withRetries(
      options.signal,
      (failures, pauseMs) => failures < maxRetries && pauseMs <= maxPauseMs,
      () => sendAuthorized(name, input, { ...options, headers }, login),
    );
  }

  async function ask<K extends OperationName>(
    name: K,
    input: InputOf<K>,
    options?: CallOptions,
    loginAtStart?: Promise<string | undefined>,
  ): Promise<OutputOf<K>> {
    return (await sendSafely(name, input, options, loginAtStart)).body;
  }

  async function begin(login: Login): Promise<Login> {
    await session.save(tokensOf(login.token, login.refresh_token, login.expires_in));
    return login;
  }

  return {
    /** Calls an operation and returns the body of the reply. @throws PlatformError, and the signal's reason */
    request: <K extends OperationName>(name: K, ...[input, options]: Arguments<K>): Promise<OutputOf<K>> =>
      ask(name, input ?? {}, options),

    /** Calls an operation and returns status, headers and body of the reply, for example to use its ETag. */
    send: <K extends OperationName>(
      name: K,
      ...[input, options]: Arguments<K>
    ): Promise<Reply<OutputOf<K>>> => sendSafely(name, input ?? {}, options),

    /** Yields every item of a list, page by page. */
    list: <K extends ListName>(
      name: K,
      ...[input, options]: Arguments<K>
    ): AsyncGenerator<ItemOf<K>, void> => {
      let loginAtStart: Promise<string | undefined> | undefined;
      return itemsOf<ItemOf<K>>((cursor) => {
        loginAtStart ??= currentLogin();
        return ask(name, { ...input, ...(cursor && { cursor }) } as InputOf<K>, options, loginAtStart);
      }, options?.signal);
    },

    /** Logs in. @throws PlatformError `mfa_required`: pass its `detail('mfa_token')` to `loginMfa` */
    login: async (input: InputOf<'login'>, options?: CallOptions): Promise<Login> =>
      begin(await ask('login', input, options)),

    /** Completes a login with a code of the authenticator app, or a recovery code. */
    loginMfa: async (input: InputOf<'loginMfa'>, options?: CallOptions): Promise<Login> =>
      begin(await ask('loginMfa', input, options)),

    /** Completes a single sign-on with the code of the URL to which the browser returned. */
    async loginWithCode(
      { code, code_verifier }: { code: string; code_verifier: string },
      options?: CallOptions,
    ): Promise<void> {
      const grant_type = 'urn:content-platform:identity-code';
      const body = await ask('token', { grant_type, code, code_verifier }, options);
      await session.save(tokensOf(body.access_token, body.refresh_token ?? '', body.expires_in));
    },

    isLoggedIn: async (): Promise<boolean> => (await session.read()) !== undefined,

    /** Replaces the access token, for example after the roles of the user changed. */
    async refresh({ signal }: Pick<CallOptions, 'signal'> = {}): Promise<void> {
      await session.renew((await session.read())?.token ?? '', signal);
    },

    /** Ends the session. Forgets the tokens even if the platform is unreachable. */
    async logout(input: InputOf<'logout'> = {}, options?: CallOptions): Promise<void> {
      const tokens = await session.read();
      try {
        if (tokens) await ask('logout', input, options, Promise.resolve(tokens.login));
      } catch (error) {
        const isOver = error instanceof PlatformError && [400, 401].includes(error.status);
        if (!isOver) throw error;
      } finally {
        await session.clear(tokens?.login);
      }
    },

    /** Reads a record. */
    read: async (model: Model, id: number | string, options?: CallOptions): Promise<ContentRecord> =>
      (await ask('readContent', { model, id }, options)) as ContentRecord,

    /** Reads a record without its body. */
    readSummary: (model: Model, id: number | string, options?: CallOptions): Promise<ContentSummary> =>
      ask('readContent', { model, id, view: 'summary' }, options),

    /** Reads several records in this order, each once. `missing` has the ids without a record. */
    async readMany(
      model: Model,
      ids: readonly number[],
      options?: CallOptions,
    ): Promise<{ items: ContentRecord[]; missing: number[] }> {
      const unique = [...new Set(ids)];
      const items: ContentRecord[] = [];
      const missing: number[] = [];
      const loginAtStart = Promise.resolve(await currentLogin());
      const readSome = async (some: readonly number[]): Promise<void> => {
        try {
          const page = await ask('listContent', { model, ids: some.join() }, options, loginAtStart);
          items.push(...(page.items as ContentRecord[]));
          missing.push(...(page.missing ?? []));
        } catch (error) {
          // The records may be too large for one reply.
          if (!(error instanceof PlatformError) || error.status !== 422 || some.length === 1) throw error;
          const half = Math.ceil(some.length / 2);
          await readSome(some.slice(0, half));
          await readSome(some.slice(half));
        }
      };
      for (let start = 0; start < unique.length; start += idsPerCall)
        await readSome(unique.slice(start, start + idsPerCall));
      return { items, missing };
    },

    /** Yields the changes of records in steps, and waits for more until the signal fires. */
    follow: (options: FollowOptions = {}): AsyncGenerator<FollowStep, never> => {
      let loginAtStart: Promise<string | undefined> | undefined;
      return followChanges(async (input) => {
        const login = await (loginAtStart ??= currentLogin());
        return (await sendAuthorized('listChanges', input, { signal: options.signal }, login)).body;
      }, options);
    },

    /** Uploads an image or a PDF. Reads a stream to its end first. */
    async upload(
      data: Blob | ReadableStream<Uint8Array>,
      { name, ...options }: CallOptions & { name?: string | undefined } = {},
    ): Promise<MediaFile> {
      const login = await currentLogin();
      const file = await fileOf(data, name, options.signal);
      return ask('upload', { file }, options, Promise.resolve(login));
    },
  };
}
