import * as contract from '@content-platform/contract';
import {
  createService,
  createTokenVerifier,
  handle,
  type Database,
  type Logger,
  type Metrics,
  type Revocations,
} from '@content-platform/chassis';
import { createAccessTokens } from './access-tokens.ts';
import { createClientStore } from './client-store.ts';
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
import type { FailureCounts } from './guessing/failure-counts.ts';
import { clientCredentials } from './grants/client-credentials.ts';
import type { Grant } from './grants/grant.ts';
import { identityCode } from './grants/identity-code.ts';
import { refreshToken } from './grants/refresh-token.ts';
import { createIdentityService } from './identity/identity.ts';
import { createIdentityLoginStore } from './identity/login-store.ts';
import type { IdentitySettings } from './identity/settings.ts';
import { createGuesses } from './guessing/guesses.ts';
import { createLogins } from './metrics.ts';
import { createPasswordPolicy } from './passwords/password-policy.ts';
import { createPasswords } from './passwords/passwords.ts';
import type { PushDevices } from './sessions/push-devices.ts';
import { createSessionStore } from './sessions/session-store.ts';
import { createSessions } from './sessions/sessions.ts';
import type { SigningKeys } from './keys/signing-keys.ts';
import { createUserStore } from './user-store.ts';

export interface AuthDeps {
  /** PUBLIC_URL: the tokens' issuer. */
  issuer: string;
  database: Database;
  keys: SigningKeys;
  /** Successors of refresh tokens are derived under it. */
  refreshSecret: Buffer;
  revocations: Revocations;
  /** Failed logins. */
  failures: FailureCounts;
  /** PASSWORD_MIN_LENGTH */
  passwordMinLength: number;
  identity: IdentitySettings;
  /** What a logout takes its push token from. */
  pushDevices: PushDevices;
  logger: Logger;
  metrics: Metrics;
}

export function createAuth(deps: AuthDeps) {
  const { issuer, database, keys, revocations, logger, metrics } = deps;
  const { query } = database;
  const users = createUserStore(query);
  const clients = createClientStore(query);
  const passwords = createPasswords();
  const policy = createPasswordPolicy(deps.passwordMinLength);
  const tokens = createAccessTokens(issuer, keys);
  const sessions = createSessions(database, tokens, deps.refreshSecret);
  const guesses = createGuesses(deps.failures);
  const logins = createLogins(metrics);
  const identity = createIdentityService(deps.identity, issuer, logger);
  const verifier = createTokenVerifier(issuer, keys, revocations);
  const grants = {
    client_credentials: clientCredentials({ clients, passwords, guesses, tokens, database, logger }),
    refresh_token: refreshToken({ sessions }),
    'urn:content-platform:identity-code': identityCode({ database, sessions }),
  } satisfies Record<contract.GrantType, Grant>;
  return createService({ name: 'auth', logger, metrics, tokens: verifier }, [
    handle(contract.login, login({ database, users, passwords, guesses, sessions, logins, logger })),
    handle(contract.token, token({ grants })),
    handle(contract.logout, logout({ database, pushDevices: deps.pushDevices })),
    handle(contract.me, me({ users })),
    handle(contract.changePassword, changePassword({ database, users, passwords, policy, guesses })),
    handle(contract.listSessions, listSessions({ sessions: createSessionStore(query) })),
    handle(contract.deleteSessions, deleteSessions({ database })),
    handle(contract.deleteSession, deleteSession({ database })),
    handle(contract.listUsers, listUsers({ users })),
    handle(contract.createUser, createUser({ database, users, passwords, policy })),
    handle(contract.readUser, readUser({ users })),
    handle(contract.updateUser, updateUser({ database })),
    handle(contract.deleteUser, deleteUser({ database })),
    handle(contract.createTemporaryPassword, createTemporaryPassword({ database, passwords })),
    handle(contract.listAudit, listAudit({ query })),
    handle(
      contract.identityLogin,
      identityLogin({ identity, logins: createIdentityLoginStore(query) }),
      identity.gate,
    ),
    handle(contract.identityCallback, identityCallback({ identity, database, logger }), identity.gate),
    handle(contract.identityLogout, identityLogout({ identity, database, logger }), identity.gate),
    handle(contract.updateSuborg, updateSuborg({ database }), identity.gate),
    handle(contract.jwks, jwks({ keys })),
  ]);
}
