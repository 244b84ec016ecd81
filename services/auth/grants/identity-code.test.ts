import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { until } from '../../../test/support/wait.ts';
import { sha256 } from '../sessions/opaque-token.ts';
import { person, useIdentityService } from '../testing/identity-fixture.ts';
import { untilBlocked } from '../../../test/support/locks.ts';
import { createUserStore } from '../user-store.ts';
import { reasonOf } from '../testing/start-auth.ts';

const scene = useIdentityService({ people: [person('ann'), person('bea')] });

async function codeOf(subject = 'ann'): Promise<{ code: string; verifier: string }> {
  const { code, verifier } = await scene.logIn(subject);
  return { code: code!, verifier };
}

test('stores the code as a hash', async () => {
  const { code } = await codeOf();
  expect(await scene.auth.sql('SELECT hash FROM auth.identity_code')).toContainEqual({ hash: sha256(code) });
});

test('refuses a repeated code, and ends the session that its first use opened', async () => {
  const { code, verifier } = await codeOf();
  const { body } = await scene.redeem(code, verifier);
  const token = body!.access_token;
  expect(reasonOf(await scene.redeem(code, 'v'.repeat(43)))).toBe('reused');
  expect(reasonOf(await scene.auth.refresh(body!.refresh_token!))).toBe('revoked');
  await until('the token is refused', () => scene.auth.isRefused(token));
  expect((await scene.events())[0]).toMatchObject({ event: 'session_revoked' });
});

test('concurrent requests with one code open at most one session, which ends', async () => {
  const { code, verifier } = await codeOf();
  // Opens the connections first, so that the requests really run at the same time.
  await Promise.all(Array.from({ length: 10 }, () => scene.auth.sql('SELECT pg_sleep(0.1)')));
  const answers = await Promise.all(Array.from({ length: 10 }, () => scene.redeem(code, verifier)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  const refresh_token = answers.find(({ body }) => body)!.body!.refresh_token!;
  expect(reasonOf(await scene.auth.refresh(refresh_token))).toBe('revoked');
});

test.each<[string, (verifier: string) => string]>([
  ['another verifier', () => 'v'.repeat(43)],
  ['the challenge as a verifier', (verifier) => sha256(verifier).toString('base64url')],
])('refuses %s, which uses up the code', async (_, wrongFor) => {
  const { code, verifier } = await codeOf();
  expect(reasonOf(await scene.redeem(code, wrongFor(verifier)))).toBe('unknown');
  expect(reasonOf(await scene.redeem(code, verifier))).toBe('reused');
});

test('records a failed code once with its user, and does not record unknown codes', async () => {
  const [taken, late, barred, spent] = [await codeOf(), await codeOf(), await codeOf(), await codeOf()];
  const age = `UPDATE auth.identity_code SET created_at = '2000-01-01' WHERE hash = $1`;
  await scene.auth.sql(age, sha256(late.code));
  const { body } = await scene.redeem(spent.code, spent.verifier);
  await scene.auth.ask(contract.logout, { token: body!.access_token });
  const { length } = await scene.events();
  const three = async (code: string, verifier: string) => {
    for (let times = 0; times < 3; times += 1) await scene.redeem(code, verifier);
  };
  await three(taken.code, 'v'.repeat(43));
  await three(late.code, late.verifier);
  await three(spent.code, spent.verifier);
  await three('x'.repeat(43), taken.verifier);
  await scene.auth.sql('UPDATE auth.user SET disabled = true');
  await three(barred.code, barred.verifier);
  await scene.auth.sql('UPDATE auth.user SET disabled = false');
  const written = (await scene.events()).toReversed().slice(length);
  const reasons = ['wrong code verifier', 'the code has expired', 'the code was reused', 'disabled'];
  const user_id = expect.stringMatching(/^\d+$/) as unknown as string;
  const failures = reasons.map((reason) => ({ event: 'login_failed', user_id, details: { reason } }));
  expect(written).toMatchObject(failures);
});

test('accepts a code for 60 seconds', async () => {
  const [young, old] = [await codeOf(), await codeOf()];
  const age = `UPDATE auth.identity_code SET created_at = now() - make_interval(secs => $2) WHERE hash = $1`;
  await scene.auth.sql(age, sha256(young.code), 50);
  await scene.auth.sql(age, sha256(old.code), 61);
  expect((await scene.redeem(young.code, young.verifier)).status).toBe(200);
  expect(reasonOf(await scene.redeem(old.code, old.verifier))).toBe('expired');
});

test('exchanging a code and deleting its user do not deadlock', async () => {
  const { database } = scene.auth;
  const { code, verifier } = await codeOf('bea');
  const { redeeming } = await database.transaction(async (query) => {
    const users = createUserStore(query);
    const { id } = (await users.findByEmail('bea@example.com'))!;
    await users.lock(id);
    const redeeming = scene.redeem(code, verifier);
    await untilBlocked(database);
    await users.delete(id);
    return { redeeming };
  });
  expect(reasonOf(await redeeming)).toBe('unknown');
});

test.each(['x', 'x'.repeat(43)])('refuses the unknown code %s', async (code) => {
  expect(reasonOf(await scene.redeem(code, 'v'.repeat(43)))).toBe('unknown');
});

test.each(['code', 'code_verifier'])('returns 400 invalid_request without %s', async (name) => {
  const { code, verifier } = await codeOf();
  const whole = { grant_type: 'urn:content-platform:identity-code', code, code_verifier: verifier };
  const body = Object.fromEntries(Object.entries(whole).filter(([one]) => one !== name)) as typeof whole;
  const { status, error } = await scene.auth.ask(contract.token, { body });
  expect([status, error?.error, error?.details?.[0]?.path]).toEqual([400, 'invalid_request', `body.${name}`]);
});
