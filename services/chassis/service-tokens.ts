import { z } from 'zod';
import type { ServiceName } from '@content-platform/contract/services';
import { createBreaker, withTimeout } from './concurrency.ts';
import { currentContext, traced } from './context.ts';
import type { Logger } from './logger.ts';

const tokenTimeoutMs = 1_000;
/** A token is no longer sent when it expires in less than this time. */
const reserveMs = 30_000;

const reply = z.object({ token: z.string(), expires_in: z.int() });

/** Calls fetch with the token of a service. Rejects as fetch does, for a redirect, and if auth issues no token. */
export type ServiceFetch = (url: string, init: RequestInit) => Promise<Response>;

/** Calls internal listeners with tokens of `tokenOf`, and with the id and the trace of the current request. */
export function fetchWithToken(tokenOf: () => string | Promise<string>): ServiceFetch {
  return (url, init) =>
    traced(`${init.method ?? 'GET'} ${new URL(url).pathname}`, {}, async (span) => {
      const headers = new Headers({ ...span?.headers(), ...(init.headers as Record<string, string>) });
      headers.set('Authorization', `Bearer ${await tokenOf()}`);
      headers.set('X-Request-Id', currentContext()?.requestId ?? '');
      return fetch(url, { ...init, headers, redirect: 'error' });
    });
}

/**
 * Calls internal listeners with tokens that auth's internal listener at `internalUrl` issues. A token is renewed after
 * half of its 15 minutes, and used until its end while auth is unavailable.
 */
export function createServiceFetch(internalUrl: string, name: ServiceName, secret: string): ServiceFetch {
  const credentials = Buffer.from(`${name}:${secret}`).toString('base64');
  let held: { token: string; renewAt: number; endsAt: number } | undefined;
  let renewing: Promise<void> | undefined;

  async function renew(): Promise<void> {
    const response = await fetch(`${internalUrl}/service-token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${credentials}` },
      signal: AbortSignal.timeout(tokenTimeoutMs),
      redirect: 'error',
    });
    if (!response.ok) throw new Error(`${internalUrl}/service-token answered ${response.status}`);
    const { token, expires_in } = reply.parse(await response.json());
    const [now, lifetimeMs] = [performance.now(), expires_in * 1_000];
    held = { token, renewAt: now + lifetimeMs / 2, endsAt: now + lifetimeMs - reserveMs };
  }

  async function currentToken(): Promise<string> {
    if (held && performance.now() < held.renewAt) return held.token;
    renewing ??= renew().finally(() => (renewing = undefined));
    await renewing.catch((error: unknown) => {
      if (!held || performance.now() > held.endsAt) throw error;
    });
    return held!.token;
  }

  const send = fetchWithToken(currentToken);
  return async (url, init) => {
    const response = await send(url, init);
    if (response.status !== 401) return response;
    // The key of the token was withdrawn.
    held = undefined;
    await response.body?.cancel();
    return send(url, init);
  };
}

const postTimeoutMs = 1_000;

/**
 * Returns a function that posts JSON to an internal listener. It resolves with whether the reply was 204, within 1 s, and
 * never rejects. After a failure one call a second is sent; `message`, which is then logged, names the consequence.
 */
export function createPost(url: string, fetchAsService: ServiceFetch, logger: Logger, message: string) {
  const breaker = createBreaker(logger, message);

  async function send(body: object): Promise<true> {
    const response = await fetchAsService(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(postTimeoutMs),
    });
    await response.body?.cancel();
    if (response.status !== 204) throw new Error(`${url} answered ${response.status}`);
    return true;
  }

  return async (body: object): Promise<boolean> => {
    if (!breaker.allows()) return false;
    try {
      if (!(await withTimeout(send(body), postTimeoutMs))) throw new Error(`${url} did not answer`);
      breaker.report(true);
      return true;
    } catch (error) {
      breaker.report(false, error);
      return false;
    }
  };
}
