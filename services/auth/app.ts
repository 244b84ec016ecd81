import * as contract from '@content-platform/contract';
import {
  type Caller,
  createService,
  type Gate,
  handle,
  type Handler,
  HttpError,
} from '@content-platform/chassis';
import { type AuthDeps, createContext } from './context.ts';
import { listAudit } from './endpoints/audit.ts';
import { identityCallback, identityLogin } from './endpoints/identity-login.ts';
import { backchannelLogout, identityLogout, updateSuborg } from './endpoints/identity-session.ts';
import { loginMfa } from './endpoints/login-mfa.ts';
import { login } from './endpoints/login.ts';
import { deleteMe, exportMe, me } from './endpoints/me.ts';
import { beginTotp, confirmTotp, deleteTotp } from './endpoints/mfa.ts';
import { changePassword, forgotPassword, resetPassword } from './endpoints/password.ts';
import {
  deleteSession,
  deleteSessions,
  deleteUserSessions,
  listSessions,
  listUserSessions,
  logout,
  reauthenticate,
} from './endpoints/sessions.ts';
import { jwks, token } from './endpoints/token.ts';
import { createTemporaryPassword, deleteUserIdentity, deleteUserMfa } from './endpoints/user-access.ts';
import { createUser, deleteUser, listUsers, readUser, updateUser } from './endpoints/users.ts';
import { requireRecentLogin } from './sessions/caller.ts';

export function createAuth(deps: AuthDeps) {
  const context = createContext(deps);
  const { database, identity, logger, metrics } = context;
  const mailGate: Gate = () => {
    if (!deps.resetKey) throw new HttpError('mail_disabled', 'Sending mail is not configured.');
  };

  /** Pairs an endpoint with its handler, and adds the check of a recent login where the contract requires one. */
  function route<E extends contract.Endpoint>(endpoint: E, handler: Handler<E>, gate?: Gate) {
    if (!endpoint.recentLogin) return handle(endpoint, handler, gate);
    const checked: Handler<E> = async (call) => {
      await requireRecentLogin(database.sessions, call.caller as Caller);
      return handler(call);
    };
    return handle(endpoint, checked, gate);
  }

  return createService({ name: 'auth', logger, metrics, tokens: deps.verifier }, [
    route(contract.login, login(context)),
    route(contract.loginMfa, loginMfa(context)),
    route(contract.token, token(context)),
    route(contract.logout, logout(context)),
    route(contract.me, me(context)),
    route(contract.deleteMe, deleteMe(context)),
    route(contract.exportMe, exportMe(context)),
    route(contract.changePassword, changePassword(context)),
    route(contract.forgotPassword, forgotPassword(context), mailGate),
    route(contract.resetPassword, resetPassword(context)),
    route(contract.reauthenticate, reauthenticate(context)),
    route(contract.beginTotp, beginTotp(context)),
    route(contract.confirmTotp, confirmTotp(context)),
    route(contract.deleteTotp, deleteTotp(context)),
    route(contract.listSessions, listSessions(context)),
    route(contract.deleteSessions, deleteSessions(context)),
    route(contract.deleteSession, deleteSession(context)),
    route(contract.listUsers, listUsers(context)),
    route(contract.createUser, createUser(context)),
    route(contract.readUser, readUser(context)),
    route(contract.updateUser, updateUser(context)),
    route(contract.deleteUser, deleteUser(context)),
    route(contract.listUserSessions, listUserSessions(context)),
    route(contract.deleteUserSessions, deleteUserSessions(context)),
    route(contract.deleteUserIdentity, deleteUserIdentity(context)),
    route(contract.deleteUserMfa, deleteUserMfa(context)),
    route(contract.createTemporaryPassword, createTemporaryPassword(context)),
    route(contract.listAudit, listAudit(context)),
    route(contract.identityLogin, identityLogin(context), identity.gate),
    route(contract.identityCallback, identityCallback(context), identity.gate),
    route(contract.backchannelLogout, backchannelLogout(context), identity.gate),
    route(contract.identityLogout, identityLogout(context), identity.gate),
    route(contract.updateSuborg, updateSuborg(context), identity.gate),
    route(contract.jwks, jwks(context)),
  ]);
}
