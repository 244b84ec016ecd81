import { randomInt, randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { stack } from './stack.ts';

/** The accounts that the demo data brings. */
export const password = 'demo-password';
export const emails = { user: 'user@example.com', sre: 'sre@example.com', admin: 'admin@example.com' };
export const machine = { id: 'content-server', secret: 'demo-secret' };

/** `temporary`: a person who has logged in with a temporary password, and not changed it. */
export type Account = keyof typeof emails | 'machine' | 'temporary';

/** A client of its own: guesses and logins are limited by address, and all tests come from one. */
export const newAddress = (): string => `10.${randomInt(256)}.${randomInt(256)}.${randomInt(1, 255)}`;
const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } });

/** They last for 15 minutes. */
const renewAfterMs = 10 * 60_000;

/** Gets a token when it is first asked for, and another before it ends; while there is none to be had the old one has to do. */
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

const tokens = new Map<string, () => Promise<string>>();

/** Makes a user as an admin does. Throws when that is refused. */
export async function createUser(
  body: contract.BodyInput<typeof contract.createUser>,
  gateway = stack().gateway,
) {
  const token = await tokenOf(gateway, 'admin');
  const answer = await call(gateway, contract.createUser, { body, token });
  if (answer.error) throw new Error(`cannot make a user: ${answer.error.message}`);
  return answer.body;
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
    const answer = await call(gateway, contract.token, { body, ...from(newAddress()) });
    if (answer.error) throw new Error(`no token for the machine client: ${answer.error.message}`);
    return answer.body.access_token;
  }
  if (account === 'temporary') return temporaryToken(gateway);
  return (await logIn(emails[account], password, gateway)).token;
}

/** An access token of a demo account that is valid for minutes; each test file logs in once per account, and then again. */
export function tokenOf(gateway: string, account: Account): Promise<string> {
  const key = `${gateway} ${account}`;
  let token = tokens.get(key);
  if (!token) tokens.set(key, (token = renewed(() => fetchToken(gateway, account))));
  return token();
}

export interface Login {
  token: string;
  refreshToken: string;
  /** where it came from */
  address: string;
}

export interface OwnUser extends Login {
  id: number;
  email: string;
  password: string;
}

/** Logs in at the gateway, from an address of its own. Throws when that is refused. */
export async function logIn(email: string, secret: string, gateway = stack().gateway): Promise<Login> {
  const address = newAddress();
  const answer = await call(gateway, contract.login, { body: { email, password: secret }, ...from(address) });
  if (answer.error) throw new Error(`cannot log in as ${email}: ${answer.error.message}`);
  return { token: answer.body.token, refreshToken: answer.body.refresh_token, address };
}

/**
 * A user of the test's own, logged in: for what would disturb the others who use the demo accounts. No admin: tests of
 * the last one run beside.
 */
export async function newUser(...roles: Exclude<contract.Role, 'admin'>[]): Promise<OwnUser> {
  const email = `own-${randomUUID()}@example.com`;
  const own = `own passphrase ${randomUUID()}`;
  const body = { email, name: 'Olive Own', password: own, ...(roles.length > 0 && { roles }) };
  const { id } = await createUser(body);
  return { id, email, password: own, ...(await logIn(email, own)) };
}

/** Access tokens of a user of the test's own that are valid for minutes, however long the test lasts. */
export const tokensOf = ({ email, password: own }: OwnUser): (() => Promise<string>) =>
  renewed(async () => (await logIn(email, own)).token);
