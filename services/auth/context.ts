import type { Logger } from '@content-platform/chassis';
import type { AccessTokens } from './access-tokens.ts';
import type { IdentityService } from './identity/identity.ts';
import type { SigningKeys } from './keys/signing-keys.ts';
import type { Logins } from './metrics.ts';
import type { EqualizeFailureTime } from './passwords/failure-time.ts';
import type { PasswordPolicy } from './passwords/password-policy.ts';
import type { Passwords } from './passwords/passwords.ts';
import type { PersonalData } from './personal-data.ts';
import type { PushDevices } from './sessions/push-devices.ts';
import type { Sessions } from './sessions/sessions.ts';
import type { AuthDatabase } from './stores.ts';
import type { LoginThrottle } from './throttle/login-throttle.ts';

/** The dependencies of endpoints and grants. app.ts creates one object; each endpoint names the parts that it uses. */
export interface AuthContext {
  database: AuthDatabase;
  keys: SigningKeys;
  tokens: AccessTokens;
  sessions: Sessions;
  passwords: Passwords;
  policy: PasswordPolicy;
  throttle: LoginThrottle;
  equalizeFailureTime: EqualizeFailureTime;
  identity: IdentityService;
  /** Key that encrypts the secrets of second factors. */
  totpKey: Buffer;
  /** Key that encrypts tokens for new passwords until their mails are sent; undefined: no mails are sent. */
  resetKey: Buffer | undefined;
  pushDevices: PushDevices;
  personalData: PersonalData;
  logins: Logins;
  logger: Logger;
}
