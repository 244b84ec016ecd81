import type { Call } from '@content-platform/chassis';
import type { Scope, token } from '@content-platform/contract';

export interface Granted {
  accessToken: string;
  scopes: readonly Scope[];
  refreshToken?: string;
}

/** One way to an access token. Throws the errors of RFC 6749 §5.2. */
export type Grant = (call: Call<typeof token>) => Promise<Granted>;
