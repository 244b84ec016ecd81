import { scopes, type Role, type Scope } from '@content-platform/contract';

const scopesByRole: Record<Role, readonly Scope[]> = {
  user: [],
  sre: ['jobs:manage', 'pulse:view'],
  admin: scopes,
};

/** Returns the scopes of these roles, in the contract's order. */
export function scopesOf(roles: readonly Role[]): Scope[] {
  return scopes.filter((scope) => roles.some((role) => scopesByRole[role].includes(scope)));
}
