import { type Call, invalidFields } from '@content-platform/chassis';
import type { Body, Scope, token } from '@content-platform/contract';

interface Granted {
  accessToken: string;
  scopes: readonly Scope[];
  refreshToken?: string;
}

/** Issues an access token for one grant type. Throws the errors of RFC 6749 §5.2. */
export type Grant = (call: Call<typeof token>) => Promise<Granted>;

/** Returns a parameter that this grant needs. Throws 400 `invalid_request` if it is missing. */
export function required(body: Body<typeof token>, name: keyof Body<typeof token>): string {
  const value = body[name];
  if (value !== undefined) return value;
  throw invalidFields([{ path: `body.${name}`, message: 'Is missing.' }], 'invalid_request');
}
