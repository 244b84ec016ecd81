import { afterAll, beforeAll, expect, test } from '@jest/globals';
import jwt from 'jsonwebtoken';
import { createPublicKey } from 'node:crypto';
import { jwks, login } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { createLogger, createTokenVerifier, createJwksClient } from '@content-platform/chassis';
import { decode, issuer, startAuth, type TestAuth } from '../testing.ts';

let auth: TestAuth;
let token: string;

beforeAll(async () => {
  auth = await startAuth();
  const body = { email: 'ann@example.com', password: 'a-password-to-keep' };
  await auth.addUser(body.email, body.password);
  token = (await call(auth.origin, login, { body })).body!.token;
});
afterAll(() => auth.stop());

test('the published key is the one that tokens are signed with, without its private half', async () => {
  const answer = await call(auth.origin, jwks);
  expect(answer.headers.get('cache-control')).toBe('public, max-age=300');
  const { keys } = answer.body!;
  expect(keys).toHaveLength(1);
  expect(Object.keys(keys[0]!).toSorted()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use']);
  expect(keys[0]!.kid).toBe(decode(token).header['kid']);
  const key = createPublicKey({ key: { ...keys[0]! }, format: 'jwk' });
  expect(key.asymmetricKeyDetails!.modulusLength).toBe(2048);
  expect(jwt.verify(token, key, { algorithms: ['RS256'] })).toEqual(decode(token).claims);
});

test('other processes check tokens with what is published', async () => {
  const keys = createJwksClient(`${auth.origin}/.well-known/jwks.json`, createLogger('gateway', 'error'));
  const caller = await createTokenVerifier(issuer, keys, { include: () => false }).verify(token);
  expect(caller).toMatchObject({ kind: 'user', id: Number(decode(token).claims['sub']) });
  await keys.close();
});
