import * as contract from '@content-platform/contract';
import {
  createService,
  createTokenVerifier,
  type Gate,
  handle,
  HttpError,
  type Metrics,
  type Revocations,
} from '@content-platform/chassis';
import { createAccessTokens } from './access-tokens.ts';
import type { AuthContext } from './context.ts';
import { backchannelLogout } from './endpoints/backchannel-logout.ts';
import { beginTotp } from './endpoints/begin-totp.ts';
import { changePassword } from './endpoints/change-password.ts';
import { confirmTotp } from './endpoints/confirm-totp.ts';
import { createTemporaryPassword } from './endpoints/create-temporary-password.ts';
import { createUser } from './endpoints/create-user.ts';
import { deleteMe } from './endpoints/delete-me.ts';
import { deleteSession } from './endpoints/delete-session.ts';
import { deleteSessions } from './endpoints/delete-sessions.ts';
import { deleteTotp } from './endpoints/delete-totp.ts';
import { deleteUser } from './endpoints/delete-user.ts';
import { deleteUserIdentity } from './endpoints/delete-user-identity.ts';
import { deleteUserMfa } from './endpoints/delete-user-mfa.ts';
import { deleteUserSessions } from './endpoints/delete-user-sessions.ts';
import { exportMe } from './endpoints/export-me.ts';
import { forgotPassword } from './endpoints/forgot-password.ts';
import { identityCallback } from './endpoints/identity-callback.ts';
import { identityLogin } from './endpoints/identity-login.ts';
import { identityLogout } from './endpoints/identity-logout.ts';
import { jwks } from './endpoints/jwks.ts';
import { listAudit } from './endpoints/list-audit.ts';
import { listSessions } from './endpoints/list-sessions.ts';
import { listUserSessions } from './endpoints/list-user-sessions.ts';
import { listUsers } from './endpoints/list-users.ts';
import { loginMfa } from './endpoints/login-mfa.ts';
import { login } from './endpoints/login.ts';
import { logout } from './endpoints/logout.ts';
import { me } from './endpoints/me.ts';
import { readUser } from './endpoints/read-user.ts';
import { reauthenticate } from './endpoints/reauthenticate.ts';
import { resetPassword } from './endpoints/reset-password.ts';
import { token } from './endpoints/token.ts';
import { updateUser } from './endpoints/update-user.ts';
import { updateSuborg } from './endpoints/update-suborg.ts';
import { createIdentityService } from './identity/identity.ts';
import type { IdentitySettings } from './identity/settings.ts';
import { createAuthMetrics } from './metrics.ts';
import { createEqualizeFailureTime, type EqualizeFailureTime } from './passwords/failure-time.ts';
import type { Blocklist } from './passwords/blocklist.ts';
import { createPasswordPolicy } from './passwords/password-policy.ts';
import { createPasswords } from './passwords/passwords.ts';
import { createSessions } from './sessions/sessions.ts';

interface AuthDeps extends Pick<
  AuthContext,
  'database' | 'keys' | 'throttle' | 'totpKey' | 'resetKey' | 'pushDevices' | 'personalData' | 'logger'
> {
  /** PUBLIC_URL, the issuer of the tokens. */
  issuer: string;
  /** Key from which the successors of refresh tokens are derived. */
  refreshSecret: Buffer;
  revocations: Revocations;
  /** PASSWORD_MIN_LENGTH */
  passwordMinLength: number;
  /** MFA_REQUIRED_ROLES */
  mfaRoles: readonly contract.Role[];
  /** Passwords of PASSWORD_BLOCKLIST_FILE. */
  blocklist?: Blocklist | undefined;
  identity: IdentitySettings;
  equalizeFailureTime?: EqualizeFailureTime;
  metrics: Metrics;
}

export function createAuth(deps: AuthDeps) {
  const { issuer, database, keys, revocations, logger, metrics } = deps;
  const tokens = createAccessTokens(issuer, keys, deps.mfaRoles);
  const identity = createIdentityService(deps.identity, issuer, logger);
  const { logins, reusedTokens } = createAuthMetrics(metrics);
  const context: AuthContext = {
    equalizeFailureTime: createEqualizeFailureTime(),
    ...deps,
    tokens,
    sessions: createSessions(database, tokens, deps.refreshSecret, () => reusedTokens.inc()),
    passwords: createPasswords(),
    policy: createPasswordPolicy(deps.passwordMinLength, deps.blocklist),
    identity,
    logins,
  };
  const mailGate: Gate = () => {
    if (!deps.resetKey) throw new HttpError('mail_disabled', 'Sending mail is not configured.');
  };
  const verifier = createTokenVerifier(issuer, keys, revocations);
  return createService({ name: 'auth', logger, metrics, tokens: verifier }, [
    handle(contract.login, login(context)),
    handle(contract.loginMfa, loginMfa(context)),
    handle(contract.token, token(context)),
    handle(contract.logout, logout(context)),
    handle(contract.me, me(context)),
    handle(contract.deleteMe, deleteMe(context)),
    handle(contract.exportMe, exportMe(context)),
    handle(contract.changePassword, changePassword(context)),
    handle(contract.forgotPassword, forgotPassword(context), mailGate),
    handle(contract.resetPassword, resetPassword(context)),
    handle(contract.reauthenticate, reauthenticate(context)),
    handle(contract.beginTotp, beginTotp(context)),
    handle(contract.confirmTotp, confirmTotp(context)),
    handle(contract.deleteTotp, deleteTotp(context)),
    handle(contract.listSessions, listSessions(context)),
    handle(contract.deleteSessions, deleteSessions(context)),
    handle(contract.deleteSession, deleteSession(context)),
    handle(contract.listUsers, listUsers(context)),
    handle(contract.createUser, createUser(context)),
    handle(contract.readUser, readUser(context)),
    handle(contract.updateUser, updateUser(context)),
    handle(contract.deleteUser, deleteUser(context)),
    handle(contract.listUserSessions, listUserSessions(context)),
    handle(contract.deleteUserSessions, deleteUserSessions(context)),
    handle(contract.deleteUserIdentity, deleteUserIdentity(context)),
    handle(contract.deleteUserMfa, deleteUserMfa(context)),
    handle(contract.createTemporaryPassword, createTemporaryPassword(context)),
    handle(contract.listAudit, listAudit(context)),
    handle(contract.identityLogin, identityLogin(context), identity.gate),
    handle(contract.identityCallback, identityCallback(context), identity.gate),
    handle(contract.backchannelLogout, backchannelLogout(context), identity.gate),
    handle(contract.identityLogout, identityLogout(context), identity.gate),
    handle(contract.updateSuborg, updateSuborg(context), identity.gate),
    handle(contract.jwks, jwks(context)),
  ]);
}
