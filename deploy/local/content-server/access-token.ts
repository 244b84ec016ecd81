import { token as tokenEndpoint } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import type { Settings } from './settings.ts';

export type AccessToken = ReturnType<typeof createAccessToken>;

/** The client ID or secret is wrong, or the server cannot issue a token now. */
export class RefusedToken extends Error {
  readonly status: number;
  readonly headers: Headers;

  constructor(status: number, headers: Headers, message: string) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** Gets a token of the content server by client credentials (RFC 6749 §4.4) and keeps it until shortly before it expires. */
export function createAccessToken({ gateway, clientId, clientSecret }: Settings) {
  let kept: { value: string; renewAt: number } | undefined;

  async function fetchToken(): Promise<NonNullable<typeof kept>> {
    const basic = [clientId, clientSecret].map(encodeURIComponent).join(':');
    const answer = await call(gateway, tokenEndpoint, {
      headers: { authorization: `Basic ${Buffer.from(basic).toString('base64')}` },
      body: { grant_type: 'client_credentials' },
    });
    if (answer.error)
      throw new RefusedToken(answer.status, answer.headers, `no token: ${answer.error.message}`);
    const { access_token: value, expires_in: seconds } = answer.body;
    return { value, renewAt: Date.now() + seconds * 1_000 - 60_000 };
  }

  return {
    /** Returns a token that stays valid for at least a minute. @throws RefusedToken, or the error of fetch */
    async get(): Promise<string> {
      if (!kept || Date.now() >= kept.renewAt) kept = await fetchToken();
      return kept.value;
    },
    drop: (): void => void (kept = undefined),
  };
}
