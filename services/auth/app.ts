import * as contract from '@content-platform/contract';
import {
  createService,
  createTokenVerifier,
  handle,
  type Logger,
  type Metrics,
  type Revocations,
} from '@content-platform/chassis';
import { createAccessTokens } from './access-tokens.ts';
import { changePassword } from './endpoints/change-password.ts';
import { createTemporaryPassword } from './endpoints/create-temporary-password.ts';
import { createUser } from './endpoints/create-user.ts';
import { deleteSession } from './endpoints/delete-session.ts';
import { deleteSessions } from './endpoints/delete-sessions.ts';
import { deleteUser } from './endpoints/delete-user.ts';
import { identityCallback } from './endpoints/identity-callback.ts';
import { identityLogin } from './endpoints/identity-login.ts';
import { identityLogout } from './endpoints/identity-logout.ts';
import { jwks } from './endpoints/jwks.ts';
import { listAudit } from './endpoints/list-audit.ts';
import { listSessions } from './endpoints/list-sessions.ts';
import { listUsers } from './endpoints/list-users.ts';
import { login } from './endpoints/login.ts';
import { logout } from './endpoints/logout.ts';
import { me } from './endpoints/me.ts';
import { readUser } from './endpoints/read-user.ts';
import { token } from './endpoints/token.ts';
import { updateUser } from './endpoints/update-user.ts';
import { updateSuborg } from './endpoints/update-suborg.ts';
import { clientCredentials } from './grants/client-credentials.ts';
import type { Grant } from './grants/grant.ts';
import { identityCode } from './grants/identity-code.ts';
import { refreshToken } from './grants/refresh-token.ts';
import { createIdentityService } from './identity/identity.ts';
import type { IdentitySettings } from './identity/settings.ts';
import { createLogins } from './metrics.ts';
import { createEqualizeFailureTime, type EqualizeFailureTime } from './passwords/failure-time.ts';
import { createPasswordPolicy } from './passwords/password-policy.ts';
import { createPasswords } from './passwords/passwords.ts';
import type { PushDevices } from './sessions/push-devices.ts';
import { createSessions } from './sessions/sessions.ts';
import type { SigningKeys } from './keys/signing-keys.ts';
import type { AuthDatabase } from './stores.ts';
import type { LoginThrottle } from './throttle/login-throttle.ts';

export interface AuthDeps {
  /** PUBLIC_URL: the tokens' issuer. */
  issuer: string;
  database: AuthDatabase;
  keys: SigningKeys;
  /** Key from which the successors of refresh tokens are derived. */
  refreshSecret: Buffer;
  revocations: Revocations;
  throttle: LoginThrottle;
  /** PASSWORD_MIN_LENGTH */
  passwordMinLength: number;
  identity: IdentitySettings;
  pushDevices: PushDevices;
  equalizeFailureTime?: EqualizeFailureTime;
  logger: Logger;
  metrics: Metrics;
}

export function createAuth(deps: AuthDeps) {
  const { issuer, database, keys, revocations, throttle, logger, metrics } = deps;
  const { equalizeFailureTime = createEqualizeFailureTime() } = deps;
  const passwords = createPasswords();
  const policy = createPasswordPolicy(deps.passwordMinLength);
  const tokens = createAccessTokens(issuer, keys);
  const sessions = createSessions(database, tokens, deps.refreshSecret);
  const logins = createLogins(metrics);
  const identity = createIdentityService(deps.identity, issuer, logger);
  const verifier = createTokenVerifier(issuer, keys, revocations);
  const grants = {
    client_credentials: clientCredentials({ database, passwords, throttle, tokens, logger }),
    refresh_token: refreshToken({ sessions }),
    'urn:content-platform:identity-code': identityCode({ database, sessions }),
  } satisfies Record<contract.GrantType, Grant>;
  return createService({ name: 'auth', logger, metrics, tokens: verifier }, [
    handle(
      contract.login,
      login({ database, passwords, throttle, sessions, logins, equalizeFailureTime, logger }),
    ),
    handle(contract.token, token({ grants })),
    handle(contract.logout, logout({ database, pushDevices: deps.pushDevices })),
    handle(contract.me, me(database)),
    handle(contract.changePassword, changePassword({ database, passwords, policy, throttle })),
    handle(contract.listSessions, listSessions(database)),
    handle(contract.deleteSessions, deleteSessions({ database })),
    handle(contract.deleteSession, deleteSession({ database })),
    handle(contract.listUsers, listUsers(database)),
    handle(contract.createUser, createUser({ database, passwords, policy })),
    handle(contract.readUser, readUser(database)),
    handle(contract.updateUser, updateUser({ database })),
    handle(contract.deleteUser, deleteUser({ database })),
    handle(contract.createTemporaryPassword, createTemporaryPassword({ database, passwords })),
    handle(contract.listAudit, listAudit(database)),
    handle(
      contract.identityLogin,
      identityLogin({ identity, logins: database.identityLogins }),
      identity.gate,
    ),
    handle(contract.identityCallback, identityCallback({ identity, database, logger }), identity.gate),
    handle(contract.identityLogout, identityLogout({ identity, database, logger }), identity.gate),
    handle(contract.updateSuborg, updateSuborg({ database }), identity.gate),
    handle(contract.jwks, jwks({ keys })),
  ]);
}
