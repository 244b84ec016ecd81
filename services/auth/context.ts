import type { Logger, Metrics, TokenVerifier } from '@content-platform/chassis';
import type { AccessTokens } from './access-tokens.ts';
import { createIdentity } from './identity/identity.ts';
import type { IdentitySettings } from './identity/settings.ts';
import type { SigningKeys } from './keys/signing-keys.ts';
import { createAuthMetrics } from './metrics.ts';
import type { Blocklist } from './passwords/blocklist.ts';
import { createEqualizeFailureTime, type EqualizeFailureTime } from './passwords/failure-time.ts';
import { createPasswordPolicy } from './passwords/password-policy.ts';
import { createPasswords } from './passwords/passwords.ts';
import type { PersonalData } from './personal-data.ts';
import type { PushDevices } from './sessions/push-devices.ts';
import { createSessions } from './sessions/sessions.ts';
import type { AuthDatabase } from './stores.ts';
import type { LoginThrottle } from './throttle/login-throttle.ts';

export interface AuthDeps {
  /** PUBLIC_URL, the issuer of the tokens. */
  issuer: string;
  database: AuthDatabase;
  keys: SigningKeys;
  /** Key from which the successors of refresh tokens are derived. */
  refreshSecret: Buffer;
  /** Key that encrypts the secrets of second factors. */
  totpKey: Buffer;
  /** Key that encrypts tokens for new passwords until their mails are sent; undefined: no mails are sent. */
  resetKey: Buffer | undefined;
  tokens: AccessTokens;
  /** Checks the access tokens of requests. */
  verifier: TokenVerifier;
  throttle: LoginThrottle;
  passwordMinLength: number;
  blocklist?: Blocklist | undefined;
  identity: IdentitySettings;
  pushDevices: PushDevices;
  personalData: PersonalData;
  equalizeFailureTime?: EqualizeFailureTime;
  logger: Logger;
  metrics: Metrics;
}

export type AuthContext = ReturnType<typeof createContext>;

/** Creates the dependencies of endpoints and grants. `deps` may replace `equalizeFailureTime`, as tests do. */
export function createContext(deps: AuthDeps) {
  const { issuer, database, tokens, logger } = deps;
  const { logins, reusedTokens } = createAuthMetrics(deps.metrics);
  return {
    equalizeFailureTime: createEqualizeFailureTime(),
    ...deps,
    sessions: createSessions(database, tokens, deps.refreshSecret, () => reusedTokens.inc()),
    passwords: createPasswords(),
    policy: createPasswordPolicy(deps.passwordMinLength, deps.blocklist),
    identity: createIdentity(deps.identity, issuer, logger),
    logins,
  };
}
