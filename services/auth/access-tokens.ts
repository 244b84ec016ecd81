import { scopes, type Role, type Scope } from '@content-platform/contract';
import jwt from 'jsonwebtoken';
import { randomUUID } from 'node:crypto';
import { audience, internalScope } from '@content-platform/chassis';
import type { SigningKeys } from './keys/signing-keys.ts';
import type { User } from './user-store.ts';

/** Lifetime of access tokens in seconds. */
export const accessTokenLifetime = 900;
/** A token's lifetime and a minute of clock skew, in s. Replaced keys and revocations are published for this time. */
export const maxTokenSeconds = accessTokenLifetime + 60;

const scopesByRole: Record<Role, readonly Scope[]> = {
  user: [],
  sre: ['jobs:manage', 'pulse:view'],
  admin: scopes,
};

/** Returns the scopes of these roles, in the contract's order. */
export function scopesOf(roles: readonly Role[]): Scope[] {
  return scopes.filter((scope) => roles.some((role) => scopesByRole[role].includes(scope)));
}

export type AccessTokens = ReturnType<typeof createAccessTokens>;

/** Makes access tokens (RFC 9068). Users of `mfaRoles` without a second factor can only set one up with them. */
export function createAccessTokens(issuer: string, keys: SigningKeys, mfaRoles: readonly Role[] = []) {
  function sign(
    subject: string,
    scopes: readonly (Scope | typeof internalScope)[],
    claims: Record<string, string | boolean>,
  ): string {
    // Read for each token, because keys are rotated while the process runs.
    const { kid, privateKey } = keys.current;
    return jwt.sign({ ...claims, scope: scopes.join(' ') }, privateKey, {
      algorithm: 'RS256',
      header: { alg: 'RS256', typ: 'at+jwt', kid },
      issuer,
      audience,
      subject,
      jwtid: randomUUID(),
      expiresIn: accessTokenLifetime,
    });
  }

  return {
    /** Makes a token for a user's session. */
    forUser: ({ id, roles, suborg, hasMfa }: User, sessionId: number, mustChangePassword: boolean) =>
      sign(String(id), scopesOf(roles), {
        sid: String(sessionId),
        ...(suborg === null ? {} : { suborg }),
        ...(!hasMfa && roles.some((role) => mfaRoles.includes(role))
          ? { mfa_enrollment_required: true }
          : {}),
        ...(mustChangePassword ? { must_change_password: true } : {}),
      }),
    forClient: (name: string, scopes: readonly Scope[]) => sign(name, scopes, { client_id: name }),
    /** Makes a token for internal listeners. No machine client has such a name. */
    forService: (name: string) => sign(`service:${name}`, [internalScope], { client_id: `service:${name}` }),
  };
}
