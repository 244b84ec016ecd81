import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';

/** The accounts that the demo data brings. */
export const password = 'demo-password';
export const emails = { user: 'user@example.com', sre: 'sre@example.com', admin: 'admin@example.com' };
export const machine = { id: 'content-server', secret: 'demo-secret' };

export type Account = keyof typeof emails | 'machine';

const tokens = new Map<string, Promise<string>>();

async function fetchToken(gateway: string, account: Account): Promise<string> {
  if (account === 'machine') {
    const body = { grant_type: 'client_credentials', client_id: machine.id, client_secret: machine.secret };
    const answer = await call(gateway, contract.token, { body });
    if (answer.error) throw new Error(`no token for the machine client: ${answer.error.message}`);
    return answer.body.access_token;
  }
  const answer = await call(gateway, contract.login, { body: { email: emails[account], password } });
  if (answer.error) throw new Error(`cannot log in as ${account}: ${answer.error.message}`);
  return answer.body.token;
}

/** An access token of a demo account; each test file logs in once per account. */
export function tokenOf(gateway: string, account: Account): Promise<string> {
  const key = `${gateway} ${account}`;
  let token = tokens.get(key);
  if (!token) tokens.set(key, (token = fetchToken(gateway, account)));
  return token;
}
