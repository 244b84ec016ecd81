import type { Caller } from '@content-platform/chassis';
import { accessTokenLifetime } from './access-tokens.ts';
import type { LinkedIdentity } from './identity/stores.ts';
import type { Session } from './sessions/session-store.ts';
import type { User } from './user-store.ts';

interface OpenedSession {
  accessToken: string;
  refreshToken: string;
}

/** Returns the reply of a login. `mustChange`: the password was temporary. */
export function toLogin({ id, email, name, createdAt }: User, opened: OpenedSession, mustChange: boolean) {
  return {
    token: opened.accessToken,
    token_type: 'Bearer' as const,
    expires_in: accessTokenLifetime,
    refresh_token: opened.refreshToken,
    user: { id, email, name, created_at: createdAt.toISOString() },
    ...(mustChange && { must_change_password: true as const }),
  };
}

/** Returns the user for replies to that user. */
export function toProfile({ id, email, name, roles, suborg, createdAt, hasMfa }: User) {
  return {
    id,
    email,
    name,
    roles,
    created_at: createdAt.toISOString(),
    mfa_enabled: hasMfa,
    ...(suborg === null ? {} : { suborg }),
  };
}

/** Returns the user for replies to administrators. */
export function toAccount({ id, email, name, roles, disabled, createdAt }: User) {
  return { id, email, name, roles, disabled, created_at: createdAt.toISOString() };
}

/** Returns an identity of the user for replies. */
export function toIdentity({ id, issuer, email, emailVerified }: LinkedIdentity) {
  return { id, issuer, email, email_verified: emailVerified };
}

/** Returns the session for replies; `current` marks the one of the caller. */
export function toSession({ id, device, address, createdAt, lastUsedAt }: Session, caller: Caller) {
  return {
    id,
    device,
    address,
    created_at: createdAt.toISOString(),
    last_used_at: lastUsedAt.toISOString(),
    current: caller.kind === 'user' && String(id) === caller.sessionId,
  };
}
