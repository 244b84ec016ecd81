import { afterAll, beforeAll, expect, test } from '@jest/globals';
import express from 'express';
import { createMetrics, tokensFromAuth } from '@content-platform/chassis';
import { type HttpServer, startHttpServer } from '../../../test/support/http-server.ts';
import { until } from '../../../test/support/wait.ts';
import { createAccessTokens } from '../access-tokens.ts';
import { rotateKeys } from '../commands/keys.ts';
import { createInternal } from '../internal.ts';
import { issuer, keySecret, password, useAuth } from '../testing/start-auth.ts';

let internal: HttpServer;
/** Checks tokens as the gateway does, with the keys and revocations that auth publishes. */
let gateway: { isRefused(token: string): Promise<boolean>; close(): Promise<unknown> };

afterAll(async () => {
  delete process.env['AUTH_KEY_SECRET'];
  await gateway.close();
  internal.close();
});
const auth = useAuth();
beforeAll(async () => {
  internal = await startHttpServer(express().use(createInternal(auth.internal)));
  const { logger } = auth;
  const closers: (() => unknown)[] = [];
  const onStop = (close: () => unknown) => void closers.push(close);
  const config = { PUBLIC_URL: issuer, AUTH_URL: auth.origin, AUTH_INTERNAL_URL: internal.origin };
  const verifier = tokensFromAuth({ config, logger, metrics: createMetrics('gateway'), onStop } as never);
  await until('keys and revocations are known', () => verifier.check.check().then(() => true));
  gateway = {
    isRefused: (token) =>
      verifier.verify(token).then(
        () => false,
        (error: Error & { error: string }) => error.error === 'invalid_token' || Promise.reject(error),
      ),
    close: () => Promise.all(closers.map((close) => close())),
  };
  process.env['AUTH_KEY_SECRET'] = keySecret;
});

test('rotate-keys --now: every process refuses tokens of the leaked key, also those it has checked before', async () => {
  const person = await auth.person();
  const { current } = auth.keys;
  const forge = () =>
    createAccessTokens(issuer, { ...auth.keys, current }).forClient('attacker', ['users:admin']);
  const forged = forge();
  for (const token of [person.token, forged]) expect(await gateway.isRefused(token)).toBe(false);

  expect(await auth.run(rotateKeys, ['--now'])).toMatch(/^Created signing key \S+, which signs immediately/);

  for (const token of [person.token, forged, forge()]) {
    await until('the gateway refuses it', () => gateway.isRefused(token));
    await until('auth refuses it', () => auth.isRefused(token));
  }
  const { body } = await auth.logIn(person.email, password);
  await until('the gateway knows the new key', async () => !(await gateway.isRefused(body!.token)));
  const refreshed = await auth.refresh(person.refreshToken);
  expect(await gateway.isRefused(refreshed.body!.access_token)).toBe(false);
});
