import { hash } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { Endpoint, Scope } from '@content-platform/contract';
import { HttpError } from './http-error.ts';
import { maxTokenLifetimeMs, type KeySource, type Revocations, type TokenSource } from './auth-state.ts';

export type Caller =
  | {
      kind: 'user';
      id: number;
      sessionId: string;
      /** Logged in with a temporary password: only setting a new password is allowed. */
      mustChangePassword: boolean;
      /** A role of the user requires a second factor, which the user has not set up. */
      mustEnrollMfa?: boolean;
      scopes: ReadonlySet<Scope>;
    }
  | { kind: 'machine'; clientId: string; scopes: ReadonlySet<Scope> };

/** Returns the caller's name for audit records, histories and keys. */
export function actorOf(caller: Caller): string {
  return caller.kind === 'user' ? `user:${caller.id}` : `client:${caller.clientId}`;
}

/** Scope of the tokens with which services call each other's internal listeners. It cannot be granted to a caller of the API. */
export const internalScope = 'internal';

export const audience = 'content-platform';

export interface TokenVerifier {
  /** Returns the token's owner. Throws 401 `invalid_token`, or 503 if the keys are unavailable. */
  verify(token: string): Promise<Caller>;
}

/** Other header fields are refused, even if signed: `crit`, `b64` and fields that bring a key. */
const header = z.strictObject({
  alg: z.literal('RS256'),
  typ: z.literal('at+jwt'),
  kid: z.string().min(1).max(200),
});

const scope = z.string().transform((value) => new Set(value.split(' ').filter(Boolean) as Scope[]));
const common = { exp: z.int(), iat: z.int(), jti: z.string().min(1), scope };
const owner = z.union([
  z.object({ ...common, client_id: z.string().min(1) }).transform(({ exp, iat, client_id, scope }) => ({
    exp,
    source: { clientId: client_id, issuedAt: iat } as TokenSource,
    caller: { kind: 'machine', clientId: client_id, scopes: scope } as Caller,
  })),
  z
    .object({
      ...common,
      sub: z.string().regex(/^[1-9]\d{0,15}$/),
      sid: z.string().min(1),
      must_change_password: z.boolean().default(false),
      mfa_enrollment_required: z.boolean().default(false),
    })
    .transform(({ exp, sub, sid, scope, ...required }) => ({
      exp,
      source: { sessionId: sid } as TokenSource,
      caller: {
        kind: 'user',
        id: Number(sub),
        sessionId: sid,
        mustChangePassword: required.must_change_password,
        mustEnrollMfa: required.mfa_enrollment_required,
        scopes: scope,
      } as Caller,
    })),
]);

const claims = z
  .looseObject({ exp: z.int(), iat: z.int() })
  // A token with a longer lifetime would outlast its revocation.
  .refine(({ exp, iat }) => (exp - iat) * 1_000 <= maxTokenLifetimeMs, 'The lifetime is too long.')
  .pipe(owner);

const form = /^[\w-]+\.[\w-]+\.([\w-]+)$/;
const maxLength = 8_192;

const invalid = (message: string) => new HttpError('invalid_token', message);

/** Checks length and form. The signature must be canonical: other last characters can decode to the same bytes. */
function isWellFormed(token: string): boolean {
  const signature = token.length <= maxLength && form.exec(token)?.[1];
  return !!signature && Buffer.from(signature, 'base64url').toString('base64url') === signature;
}

function parseHeader(token: string): z.infer<typeof header> {
  try {
    return header.parse(JSON.parse(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString()));
  } catch (cause) {
    throw Object.assign(invalid('The access token is not one of ours.'), { cause });
  }
}

/**
 * Checks access tokens: RS256 only, type at+jwt (RFC 9068), issuer, audience, times. `kid` selects a published key;
 * keys in the token are refused (RFC 8725 §3). Results are cached; each call checks that neither token nor key was
 * revoked.
 */
export function createTokenVerifier(
  issuer: string,
  keys: KeySource,
  revocations: Revocations,
): TokenVerifier {
  const verified = new LRUCache<string, z.infer<typeof claims> & { kid: string }>({ max: 10_000 });

  async function check(token: string) {
    if (!isWellFormed(token)) throw invalid('The access token is malformed.');
    const { kid } = parseHeader(token);
    const key = await keys.get(kid);
    if (!key) throw invalid('The access token is not one of ours.');
    try {
      const parsed = claims.parse(jwt.verify(token, key, { algorithms: ['RS256'], issuer, audience }));
      return { ...parsed, kid };
    } catch (error) {
      if (error instanceof jwt.TokenExpiredError) throw invalid('The access token has expired.');
      throw Object.assign(invalid('The access token is not valid.'), { cause: error });
    }
  }

  async function remembered(token: string) {
    const digest = hash('sha256', token, 'base64');
    const known = verified.get(digest);
    if (known && known.exp > Date.now() / 1000 && keys.has(known.kid)) return known;
    const fresh = await check(token);
    verified.set(digest, fresh);
    return fresh;
  }

  return {
    async verify(token) {
      const { source, caller } = await remembered(token);
      if (revocations.isRevoked(source)) throw invalid('The access token was revoked.');
      return caller;
    },
  };
}

/** Returns the token of an Authorization header (RFC 6750 §2.1). Throws 401 `token_required` or `invalid_token`. */
export function bearerToken(authorization: string | undefined): string {
  const [scheme, token, ...rest] = (authorization ?? '').split(' ');
  if (!authorization || scheme?.toLowerCase() !== 'bearer') {
    throw new HttpError('token_required', 'Send an access token: Authorization: Bearer …');
  }
  if (!token || rest.length > 0) throw invalid('The access token is malformed.');
  return token;
}

/** Throws 403 if the caller may not call the endpoint. */
export function authorize(
  caller: Caller,
  endpoint: Pick<Endpoint, 'access' | 'beforePasswordChange' | 'beforeMfaEnrollment'>,
): void {
  const { access } = endpoint;
  if (caller.kind === 'user' && caller.mustChangePassword && !endpoint.beforePasswordChange) {
    const message = 'The password is temporary. Set a new password first: POST /api/password.';
    throw new HttpError('password_change_required', message);
  }
  if (caller.kind === 'user' && caller.mustEnrollMfa && !endpoint.beforeMfaEnrollment) {
    const message = 'Set up a second factor first: POST /api/mfa/totp. Then refresh the access token.';
    throw new HttpError('mfa_enrollment_required', message);
  }
  if (access === 'public') return;
  if (access === 'user' || access === 'reader') {
    if (caller.kind === 'user') return;
    if (access === 'reader') return requireScope(caller, 'content:read');
    const message = 'The endpoint is for users; the token belongs to a machine client.';
    throw new HttpError('insufficient_scope', message);
  }
  requireScope(caller, access);
}

/** Throws 403 unless the caller's token has the scope; of several scopes, one is enough. */
export function requireScope({ scopes }: Caller, scope: Scope | readonly Scope[]): void {
  const wanted = [scope].flat();
  if (wanted.some((one) => scopes.has(one))) return;
  throw new HttpError('insufficient_scope', `The access token lacks the scope ${wanted.join(' or ')}.`, {
    // Names one scope only: a list in this header would mean that all are required (RFC 6750 §3).
    headers: { 'WWW-Authenticate': `Bearer error="insufficient_scope", scope="${wanted[0]}"` },
  });
}
