import type { RequestListener } from 'node:http';
import { createIdentityProvider, type Person } from '../../deploy/local/identity-demo/provider.ts';
import { startHttpServer } from './http-server.ts';

export type { Person };

export const client = { id: 'platform', secret: 'a-secret: with + & %20 in it' };

/** Starts a real OpenID provider in this process, where `people` log in by entering their subject. */
export async function startIdentityProvider(
  redirectUri: string,
  people: readonly Person[],
  backchannelLogoutUri?: string,
) {
  // The provider needs its URL, which is known once the server listens.
  let answer: RequestListener | undefined;
  const { origin: issuer, close } = await startHttpServer((...exchange) => answer?.(...exchange));
  const registration = { ...client, redirectUri, backchannelLogoutUri };
  answer = createIdentityProvider({ issuer, client: registration, people });
  return { issuer, close };
}

export function createBrowser() {
  const cookies = new Map<string, string>();
  return {
    cookies,
    async go(address: string | URL, init: RequestInit = {}): Promise<Response> {
      const header = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const headers = { ...(init.headers as Record<string, string> | undefined), cookie: header };
      const response = await fetch(address, { ...init, headers, redirect: 'manual' });
      for (const line of response.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
        cookies.set(name!, value!);
      }
      return response;
    },
    /** Logs in at the identity provider and returns the callback URL; an empty subject declines the login. */
    async logInThere(address: URL, subject: string): Promise<URL> {
      let next = address;
      let form: RequestInit = {};
      for (let steps = 0; steps < 10; steps += 1) {
        const response = await this.go(next, form);
        const location = response.headers.get('location');
        const body = await response.text();
        if (location === null) throw new Error(`${next.href} answered ${response.status}: ${body}`);
        next = new URL(location, next);
        if (next.origin !== address.origin) return next;
        const isLoginForm = next.pathname.startsWith('/interaction/');
        form = isLoginForm ? { method: 'POST', body: new URLSearchParams({ subject }) } : {};
      }
      throw new Error('no callback after 10 redirects of the identity provider');
    },
  };
}
