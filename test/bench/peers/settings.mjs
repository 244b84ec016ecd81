// Common settings and duties of all peers, so that only their libraries differ.
import { createPublicKey, randomUUID } from 'node:crypto';
import { createVerifier } from 'fast-jwt';
import { Redis } from 'ioredis';
import { pino } from 'pino';

const { env } = process;

export const port = Number(env.PORT);
export const upstream = env.UPSTREAM;
/** 1: it also checks tokens, limits, logs and measures; otherwise it only forwards. */
export const hasDuties = env.DUTIES === '1';

/** The measured part of the contract. */
export const route = '/api/content/:model/:id';
export const prefix = '/api/content';

/** The key of the tokens, as PEM and as a reusable object. */
export const publicKeyPem = env.PUBLIC_KEY;
export const publicKey = hasDuties ? createPublicKey(publicKeyPem) : undefined;
export const claims = { issuer: env.ISSUER, audience: 'content-platform' };

/** Verifies tokens with fast-jwt, which caches verified tokens. @throws if the request's token is invalid */
export function verifierOfTokens() {
  const verify = createVerifier({
    key: publicKeyPem,
    algorithms: ['RS256'],
    allowedIss: claims.issuer,
    allowedAud: claims.audience,
    cache: true,
  });
  return ({ headers }) => verify((headers.authorization ?? '').replace(/^Bearer /, ''));
}

/** Far above the load: counts each request and refuses none. */
export const limit = { requests: 6_000_000, seconds: 60 };
export const connectRedis = () => new Redis(env.REDIS_URL);

export const logger = pino({ base: { service: 'peer' }, messageKey: 'message' });
/** In seconds, like the gateway's. */
export const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2.5, 5, 10];

const acceptable = /^[\w.-]{1,128}$/;
export const requestId = (given) => (acceptable.test(given ?? '') ? given : randomUUID());
