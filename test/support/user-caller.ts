import type { Scope } from '@content-platform/contract';

/** The caller of a valid access token of this user. */
export const userCaller = (id: number, ...scopes: Scope[]) => ({
  kind: 'user' as const,
  id,
  sessionId: '1',
  mustChangePassword: false,
  scopes: new Set(scopes),
});
