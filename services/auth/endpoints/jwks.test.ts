import { afterAll, beforeAll, expect, test } from '@jest/globals';
import jwt from 'jsonwebtoken';
import { createPublicKey } from 'node:crypto';
import { jwks } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { decode, startAuth, type TestAuth } from '../testing/start-auth.ts';

let auth: TestAuth;

beforeAll(async () => {
  auth = await startAuth();
});
afterAll(() => auth.stop());

test('publishes the public part of the signing key only', async () => {
  const { token } = await auth.person();
  const { keys } = (await call(auth.origin, jwks)).body!;
  expect(keys).toHaveLength(1);
  expect(Object.keys(keys[0]!).toSorted()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use']);
  expect(keys[0]!.kid).toBe(decode(token).header['kid']);
  const key = createPublicKey({ key: { ...keys[0]! }, format: 'jwk' });
  expect(key.asymmetricKeyDetails!.modulusLength).toBe(3072);
  expect(jwt.verify(token, key, { algorithms: ['RS256'] })).toEqual(decode(token).claims);
});
