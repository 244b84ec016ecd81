import { randomInt, randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { database } from './records.ts';
import { stack } from './stack.ts';

export const password = 'demo-password';
export const emails = { user: 'user@example.com', sre: 'sre@example.com', admin: 'admin@example.com' };
export const machine = { id: 'content-server', secret: 'demo-secret' };

/** `temporary`: a user who logged in with a temporary password and has not changed it. */
export type Account = keyof typeof emails | 'machine' | 'temporary';

/** A random client IP address: login limits count by address, and all tests share one host. */
export const newAddress = (): string => `10.${randomInt(256)}.${randomInt(256)}.${randomInt(1, 255)}`;
const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } });

/** Access tokens last for 15 minutes. */
const renewAfterMs = 10 * 60_000;

/** Caches the token of `get` and renews it before it expires. If the renewal fails, the old token stays in use. */
function renewed(get: () => Promise<string>): () => Promise<string> {
  let token: Promise<string> | undefined;
  let gotAt = -Infinity;
  return () => {
    const now = performance.now();
    if (token && now - gotAt < renewAfterMs) return token;
    const before = token;
    gotAt = now;
    token = get().catch((error: unknown) => {
      gotAt = -Infinity;
      if (!before) throw error;
      return before;
    });
    return token;
  };
}

/** Each of jest's workers loads this module again for each test file, but keeps the tokens. */
const kept = globalThis as { tokens?: Map<string, () => Promise<string>> };
const tokens = (kept.tokens ??= new Map());

/** Returns the answer of a call. Throws if the platform refuses. */
export async function accepted<A extends { status: number; error?: contract.ErrorEnvelope | undefined }>(
  answering: Promise<A>,
) {
  const answer = await answering;
  if (answer.error) throw new Error(`${answer.status} ${answer.error.error}: ${answer.error.message}`);
  return answer as Exclude<A, { error: contract.ErrorEnvelope }>;
}

/** Creates a user as an admin. Throws if the platform refuses. */
export async function createUser(
  body: contract.BodyInput<typeof contract.createUser>,
  gateway = stack().gateway,
) {
  const token = await tokenOf(gateway, 'admin');
  return (await accepted(call(gateway, contract.createUser, { body, token }))).body;
}

async function temporaryToken(gateway: string): Promise<string> {
  const email = `temporary-${randomUUID()}@example.com`;
  const { id } = await createUser({ email, name: 'Tim Temporary' }, gateway);
  const token = await tokenOf(gateway, 'admin');
  const { body } = await call(gateway, contract.createTemporaryPassword, { params: { id }, token });
  return (await logIn(email, body!.temporary_password, gateway)).token;
}

async function fetchToken(gateway: string, account: Account): Promise<string> {
  if (account === 'machine') {
    const body = { grant_type: 'client_credentials', client_id: machine.id, client_secret: machine.secret };
    const answer = await accepted(call(gateway, contract.token, { body, ...from(newAddress()) }));
    return answer.body.access_token;
  }
  if (account === 'temporary') return temporaryToken(gateway);
  return (await logIn(emails[account], password, gateway)).token;
}

/** Returns an access token of a demo account, valid for minutes. Each of jest's workers logs in once per account. */
export function tokenOf(gateway: string, account: Account): Promise<string> {
  const key = `${gateway} ${account}`;
  let token = tokens.get(key);
  if (!token) tokens.set(key, (token = renewed(() => fetchToken(gateway, account))));
  return token();
}

/** Logs in at the gateway from a new client IP address. Throws if the login is refused. */
export async function logIn(email: string, secret: string, gateway = stack().gateway) {
  const address = newAddress();
  const body = { email, password: secret };
  const answer = await accepted(call(gateway, contract.login, { body, ...from(address) }));
  return { token: answer.body.token, refreshToken: answer.body.refresh_token, address };
}

/**
 * Creates a user and logs in, for tests that would disturb demo accounts. No admins: tests of the last admin run in
 * parallel.
 */
export async function newUser(...roles: Exclude<contract.Role, 'admin'>[]) {
  const email = `own-${randomUUID()}@example.com`;
  const secret = `own passphrase ${randomUUID()}`;
  const body = { email, name: 'Olive Own', password: secret, ...(roles.length > 0 && { roles }) };
  const { id } = await createUser(body);
  return { id, email, password: secret, ...(await logIn(email, secret)) };
}
export type OwnUser = Awaited<ReturnType<typeof newUser>>;

/** Returns a function that always yields a valid access token of the user, however long the test lasts. */
export const tokensOf = ({ email, password: secret }: OwnUser): (() => Promise<string>) =>
  renewed(async () => (await logIn(email, secret)).token);

/** Links the user to an identity, as a login before the upgrade did. Returns the link's id. */
export async function linkIdentity(userId: number): Promise<number> {
  const text = `INSERT INTO auth.identity (issuer, subject, user_id) VALUES ('https://idp.example', $1, $2) RETURNING id::int`;
  const { rows } = await database().query<{ id: number }>(text, [randomUUID(), userId]);
  return rows[0]!.id;
}

/** Refreshes tokens; `reason` is the error's reason. */
export async function refresh(refresh_token: string) {
  const answer = await call(stack().gateway, contract.token, {
    body: { grant_type: 'refresh_token', refresh_token },
  });
  const reason = answer.error?.details?.find(({ path }) => path === 'reason')?.message;
  return { status: answer.status, body: answer.body, reason };
}

/** Makes the session of an access token 16 minutes old, so that it is no recent login any more. */
export async function ageSession(token: string): Promise<void> {
  const [, claims] = token.split('.', 2) as [string, string];
  const { sid } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { sid: string };
  const text = `UPDATE auth.session SET created_at = now() - interval '16 minutes', reauthenticated_at = NULL WHERE id = $1`;
  await database().query(text, [sid]);
}
