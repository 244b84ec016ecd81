import { hash } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { Endpoint, Scope } from '@content-platform/contract';
import { HttpError } from './http-error.ts';
import type { KeySource } from './keys.ts';
import type { Revocations, TokenSource } from './revocations.ts';

/** Who is calling: a person, or a machine client. */
export type Caller =
  | {
      kind: 'user';
      id: number;
      sessionId: string;
      /** Logged in with a temporary password, and nothing but setting one is open to them. */
      mustChangePassword: boolean;
      scopes: ReadonlySet<Scope>;
    }
  | { kind: 'machine'; clientId: string; scopes: ReadonlySet<Scope> };

/** How an entry names a caller. */
export function actorOf(caller: Caller): string {
  return caller.kind === 'user' ? `user:${caller.id}` : `client:${caller.clientId}`;
}

/** The `aud` of every access token. */
export const audience = 'content-platform';

export interface TokenVerifier {
  /** Who the token belongs to. Throws 401 `invalid_token`, or 503 when the keys cannot be had. */
  verify(token: string): Promise<Caller>;
}

/** Nothing else: not what is critical (`crit`), changes the form (`b64`) or brings a key, whoever may have signed it. */
const header = z.strictObject({
  alg: z.literal('RS256'),
  typ: z.literal('at+jwt'),
  kid: z.string().min(1).max(200),
});

const scope = z.string().transform((value) => new Set(value.split(' ').filter(Boolean) as Scope[]));
const common = { exp: z.int(), iat: z.int(), jti: z.string().min(1), scope };
const claims = z.union([
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
    })
    .transform(({ exp, sub, sid, must_change_password: mustChangePassword, scope }) => ({
      exp,
      source: { sessionId: sid } as TokenSource,
      caller: { kind: 'user', id: Number(sub), sessionId: sid, mustChangePassword, scopes: scope } as Caller,
    })),
]);

const form = /^[\w-]+\.[\w-]+\.([\w-]+)$/;
const maxLength = 8_192;

function invalid(message: string): HttpError {
  return new HttpError(401, 'invalid_token', message, undefined, {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });
}

/**
 * Whether it is written as its signer wrote it. The signature covers the other parts' letters, and not its own, of which
 * the last has bits that belong to no byte.
 */
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
 * Checks access tokens: RS256 only, type at+jwt (RFC 9068), issuer, audience, times; the key is found by `kid` among
 * ours and never taken from the token (RFC 8725 §3). Checked tokens are remembered by their SHA-256 until they expire;
 * whether one was revoked is asked each time.
 */
export function createTokenVerifier(
  issuer: string,
  keys: KeySource,
  revocations: Revocations,
): TokenVerifier {
  const verified = new LRUCache<string, z.infer<typeof claims>>({ max: 10_000 });

  async function check(token: string) {
    if (!isWellFormed(token)) throw invalid('The access token is malformed.');
    const { kid } = parseHeader(token);
    const key = await keys.get(kid);
    if (!key) throw invalid('The access token is not one of ours.');
    try {
      return claims.parse(jwt.verify(token, key, { algorithms: ['RS256'], issuer, audience }));
    } catch (error) {
      if (error instanceof jwt.TokenExpiredError) throw invalid('The access token has expired.');
      throw Object.assign(invalid('The access token is not valid.'), { cause: error });
    }
  }

  async function remembered(token: string) {
    const digest = hash('sha256', token, 'base64');
    const known = verified.get(digest);
    if (known && known.exp > Date.now() / 1000) return known;
    const fresh = await check(token);
    verified.set(digest, fresh);
    return fresh;
  }

  return {
    async verify(token) {
      const { source, caller } = await remembered(token);
      if (revocations.include(source)) throw invalid('The access token was revoked.');
      return caller;
    },
  };
}

/** The token of an Authorization header (RFC 6750 §2.1). Throws 401 `token_required` or `invalid_token`. */
export function bearerToken(authorization: string | undefined): string {
  const [scheme, token, ...rest] = (authorization ?? '').split(' ');
  if (!authorization || scheme?.toLowerCase() !== 'bearer') {
    throw new HttpError(401, 'token_required', 'Send an access token: Authorization: Bearer …');
  }
  if (!token || rest.length > 0) throw invalid('The access token is malformed.');
  return token;
}

/** Throws 403 when the caller may not call the endpoint. Public ones are open to everybody. */
export function authorize(
  caller: Caller,
  { access, beforePasswordChange }: Pick<Endpoint, 'access' | 'beforePasswordChange'>,
): void {
  if (caller.kind === 'user' && caller.mustChangePassword && !beforePasswordChange) {
    throw new HttpError(
      403,
      'password_change_required',
      'Set a password of your own first: POST /api/password.',
    );
  }
  if (access === 'public' || access === 'token') return;
  if (access === 'user') {
    if (caller.kind === 'user') return;
    throw new HttpError(
      403,
      'insufficient_scope',
      'This is for people; the token belongs to a machine client.',
    );
  }
  if (caller.scopes.has(access)) return;
  throw new HttpError(403, 'insufficient_scope', `The access token lacks the scope ${access}.`, undefined, {
    headers: { 'WWW-Authenticate': `Bearer error="insufficient_scope", scope="${access}"` },
  });
}
