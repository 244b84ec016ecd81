import { Readable } from 'node:stream';
import { HttpError, type Call, type Handler } from '@content-platform/chassis';
import type { Endpoint, Reply } from '@content-platform/contract';
import type { Html } from './html.ts';
import { forbiddenPage, signInPage } from './sign-in.ts';

/** Allows only files of the platform, no inline script or style, and no frames. */
const policy = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Returns whether the client wants a page instead of JSON. */
export const isBrowser = (header: Call<Endpoint>['header']): boolean =>
  (header('accept') ?? '').includes('text/html');

export function page<S extends number>(status: S, content: Html, headers: Record<string, string> = {}) {
  const bytes = Buffer.from(content.text);
  return {
    status,
    body: Readable.from([bytes]),
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Length': String(bytes.length),
      'Content-Security-Policy': policy,
      // With the default policy a browser would send no Origin with forms of this page.
      'Referrer-Policy': 'same-origin',
      Vary: 'Accept',
      ...headers,
    },
  };
}

function errorPage({ status, error, message }: HttpError, fromElsewhere: boolean, email?: string): Html {
  if (status === 403) return forbiddenPage(message);
  return error === 'token_required' ? signInPage(undefined, '', fromElsewhere) : signInPage(message, email);
}

/** Sends errors to browsers as pages, if the contract has a page for the error's status. */
export function withPages<E extends Endpoint>(endpoint: E, handler: Handler<E>): Handler<E> {
  return async (call) => {
    try {
      return await handler(call);
    } catch (thrown) {
      if (!(thrown instanceof HttpError) || !isBrowser(call.header)) throw thrown;
      if (!endpoint.responses[thrown.status]) throw thrown;
      const fromElsewhere = call.header('sec-fetch-site') === 'cross-site';
      const form = call.body as unknown as { email?: string } | undefined;
      const content = errorPage(thrown, fromElsewhere, form?.email);
      return page(thrown.status, content, thrown.headers) as unknown as Reply<E>;
    }
  };
}
