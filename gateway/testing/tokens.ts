import { randomUUID, type KeyObject } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { createTestKey } from '@content-platform/chassis/testing/jwks-server.ts';

export const issuer = 'http://gateway.test';
export const testKey = createTestKey('test-key');

/** Signs a token: merges claims over those of a valid token of user 7; undefined removes a claim. */
export function mint(claims: Record<string, unknown> = {}, key: KeyObject = testKey.privateKey): string {
  const now = Math.floor(Date.now() / 1000);
  const common = { iss: issuer, aud: 'content-platform', iat: now, exp: now + 900, jti: randomUUID() };
  const person = { ...common, sub: '7', sid: 'session', scope: '' };
  const header = { alg: 'RS256', typ: 'at+jwt', kid: testKey.kid };
  return jwt.sign({ ...person, ...claims }, key, { algorithm: 'RS256', header });
}

export const withScopes = (...scopes: string[]) => mint({ scope: scopes.join(' ') });

export const machineToken = (name: string, ...scopes: string[]) =>
  mint({ sub: name, client_id: name, sid: undefined, scope: scopes.join(' ') });
