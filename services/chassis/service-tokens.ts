import { z } from 'zod';
import type { ServiceName } from '@content-platform/contract/services';

const tokenTimeoutMs = 1_000;
/** A token is no longer sent when it expires in less than this time. */
const reserveMs = 30_000;

const reply = z.strictObject({ token: z.string(), expires_in: z.int() });

/** Calls fetch with the token of a service. */
export type ServiceFetch = (url: string, init: RequestInit) => Promise<Response>;

/**
 * Calls internal listeners with tokens that auth's internal listener at `authUrl` signs. A token is renewed after half of
 * its 15 minutes, and used until its end while auth is unavailable. Rejects as fetch does, and without a token.
 */
export function createServiceFetch(authUrl: string, name: ServiceName, secret: string): ServiceFetch {
  const credentials = Buffer.from(`${name}:${secret}`).toString('base64');
  let held: { token: string; renewAt: number; endsAt: number } | undefined;
  let renewing: Promise<void> | undefined;

  async function renew(): Promise<void> {
    const response = await fetch(`${authUrl}/service-token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${credentials}` },
      signal: AbortSignal.timeout(tokenTimeoutMs),
      redirect: 'error',
    });
    if (!response.ok) throw new Error(`${authUrl}/service-token answered ${response.status}`);
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

  async function send(url: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set('Authorization', `Bearer ${await currentToken()}`);
    return fetch(url, { ...init, headers });
  }

  return async (url, init) => {
    const response = await send(url, init);
    if (response.status !== 401) return response;
    // The key of the token was withdrawn.
    held = undefined;
    await response.body?.cancel();
    return send(url, init);
  };
}
