import { randomBytes } from 'node:crypto';
import { newAddress } from '../support/accounts.ts';
import { stack } from '../support/stack.ts';
import type { Secret } from './secret-patterns.ts';
import type { Place } from './places.ts';

export interface Sent {
  method?: string;
  token?: string | undefined;
  headers?: Record<string, string>;
  json?: unknown;
  form?: Record<string, string>;
  body?: string | Buffer | FormData;
}

/** Returns a password with characters that URLs, forms and JSON encode differently. */
export const newPassword = () => `Zq "7" ${randomBytes(15).toString('base64')} & %2B`;

/** A client that records every secret it received or created, and every error response. */
export function createClient() {
  const secrets: Secret[] = [];
  const errors: Place[] = [];
  const surprises: string[] = [];

  /** Records a secret that later searches must not find. */
  function keep(kind: string, value: string): string {
    if (!secrets.some((secret) => secret.value === value)) secrets.push({ kind, value });
    return value;
  }

  function bodyOf({ json, form, body }: Sent): Pick<RequestInit, 'body' | 'headers'> {
    if (json !== undefined)
      return { body: JSON.stringify(json), headers: { 'Content-Type': 'application/json' } };
    if (form) return { body: new URLSearchParams(form), headers: {} };
    return { body: body instanceof Buffer ? new Uint8Array(body) : (body ?? null), headers: {} };
  }

  /** @param target a path at the gateway, or a URL */
  async function send(target: string, sent: Sent = {}) {
    const { method = sent.json || sent.form || sent.body ? 'POST' : 'GET', token, headers } = sent;
    const content = bodyOf(sent);
    const response = await fetch(new URL(target, stack().gateway), {
      method,
      body: content.body ?? null,
      redirect: 'manual',
      headers: {
        'X-Forwarded-For': newAddress(),
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(content.headers as Record<string, string>),
        ...headers,
      },
    });
    const text = await response.text();
    const { status, headers: replied } = response;
    if (status >= 400)
      errors.push({ name: 'error replies', content: `${status} ${JSON.stringify([...replied])} ${text}` });
    return { status, headers: replied, text };
  }

  /** Sends a request that must return `status`. Throws instead of a success; records other differences as surprises. */
  async function ask<T = Record<string, unknown>>(status: number, target: string, sent: Sent = {}) {
    const answer = await send(target, sent);
    if (answer.status !== status) {
      const surprise = `${target} answered ${answer.status} and not ${status}: ${answer.text}`;
      if (status < 400) throw new Error(surprise);
      surprises.push(surprise);
    }
    return (answer.text.startsWith('{') ? JSON.parse(answer.text) : {}) as T;
  }

  return { secrets, errors, surprises, keep, send, ask };
}
export type Client = ReturnType<typeof createClient>;

interface Tokens {
  token: string;
  refresh_token: string;
  user: { id: number };
}

export async function logIn({ keep, ask }: Client, email: string, password: string): Promise<Tokens> {
  const login = await ask<Tokens>(200, '/api/login', { json: { email, password } });
  keep('access token', login.token);
  keep('refresh token', login.refresh_token);
  return login;
}
