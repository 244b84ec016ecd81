import { afterAll, beforeAll, test } from '@jest/globals';
import { join } from 'node:path';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { ROOT } from '../../deploy/local/config.ts';
import { newAddress, newUser, tokenOf, type Account, type OwnUser } from '../support/accounts.ts';
import { clientToken } from '../support/admin.ts';
import { newLetter } from '../support/letters.ts';
import { samplePath } from '../support/platform.ts';
import { closeRecords } from '../support/records.ts';
import { stack } from '../support/stack.ts';
import { table } from '../support/table.ts';
import { userObjects } from '../support/user-objects.ts';
import { expectPageIsCurrent } from '../support/written-page.ts';

const file = join(ROOT, 'docs', 'reference', 'authorization.md');

/** Callers, with their column titles in the generated table. */
const callers: [string, Account | undefined][] = [
  ['no token', undefined],
  ['temporary password', 'temporary'],
  ['user', 'user'],
  ['sre', 'sre'],
  ['admin', 'admin'],
  ['content server', 'machine'],
];

const nameOf = (account: Account): string => callers.find(([, one]) => one === account)![0];

const forbidden = new Set(['token_required', 'insufficient_scope', 'password_change_required']);

/**
 * No endpoint accepts the body, so an allowed call changes nothing. Browser endpoints check the body before the token.
 */
async function isAllowed(endpoint: contract.Endpoint, account: Account | undefined): Promise<boolean> {
  const { gateway } = stack();
  const headers: Record<string, string> = { 'X-Forwarded-For': newAddress(), Origin: gateway };
  if (account) headers['Authorization'] = `Bearer ${await tokenOf(gateway, account)}`;
  const { method, cookies } = endpoint;
  const response = await fetch(`${gateway}${samplePath(endpoint)}${cookies ? '' : '?surprise=1'}`, {
    method,
    headers,
    redirect: 'manual',
  });
  const text = await response.text();
  if ([429, 500, 502, 503, 504].includes(response.status))
    throw new Error(`${endpoint.name} returned ${response.status}, which does not show rights`);
  if (response.status < 400) return true;
  const error = text.startsWith('{') ? (JSON.parse(text) as contract.ErrorEnvelope).error : '';
  return !forbidden.has(error);
}

const orderOf = ({ path, method }: contract.Endpoint): string => `${path} ${method}`;

async function allowed(): Promise<string[][]> {
  const sorted = contract.endpoints.toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
  const rows: string[][] = [];
  // One endpoint after the other: the gateway of a slow machine refuses some of all requests at once with 503.
  for (const endpoint of sorted) {
    const cells = callers.map(async ([, account]) => ((await isAllowed(endpoint, account)) ? 'yes' : '–'));
    rows.push([`${endpoint.method} ${endpoint.path}`, ...(await Promise.all(cells))]);
  }
  return [['endpoint', ...callers.map(([name]) => name)], ...rows];
}

let [owner, other]: OwnUser[] = [];
beforeAll(async () => {
  [owner, other] = await Promise.all([newUser(), newUser()]);
});
afterAll(closeRecords);

/** Requests for an object of `owner`, one for each endpoint that takes such an id. */
const objects: { endpoint: contract.Endpoint; make: () => Promise<object> }[] = [
  ...contract.endpoints
    .filter(({ access, path }) => access === 'user' && /\/:id(\/|$)/.test(path))
    .map((endpoint) => {
      const make = userObjects[endpoint.path.slice(0, endpoint.path.indexOf('/:id'))];
      if (!make)
        throw new Error(`Add to test/support/user-objects.ts how to create an object for ${endpoint.path}`);
      const others = { model: 'webform', variant: 'thumb' };
      return { endpoint, make: async () => ({ params: { ...others, id: await make(owner!) } }) };
    }),
  {
    endpoint: contract.updateLetterSkippedWebform,
    make: async () => ({
      body: { letter_id: await newLetter({ userId: owner!.id }), webform_id: 2, skipped: true },
    }),
  },
];

/** Calls as the owner last: that success shows that the refusals left the object intact. */
async function ownership(): Promise<string[][]> {
  const { gateway } = stack();
  const others: Account[] = ['temporary', 'sre', 'admin', 'machine'];
  const rows = [['request', 'owner', 'another user', ...others.map(nameOf)]];
  for (const { endpoint, make } of objects) {
    const object = await make();
    const statusFor = async (token?: string) => {
      const options = { ...object, ...(token === undefined ? {} : { token }) };
      const answer = await call(gateway, endpoint, options as never);
      return String((answer as { status: number }).status);
    };
    const cells = [await statusFor(other!.token)];
    for (const account of others) cells.push(await statusFor(await tokenOf(gateway, account)));
    const own = await statusFor(owner!.token);
    if (Number(own) >= 400) throw new Error(`The owner gets ${own} from ${endpoint.path}`);
    rows.push([`${endpoint.method} ${endpoint.path}`, own, ...cells]);
  }
  return rows;
}

/** Requests for a model of CONTENT_UNLISTED_MODELS. */
const unlisted = ['accesscode/1', 'accesscode', 'accesscode?ids=1', 'changes', 'changes?models=accesscode'];

async function lists(): Promise<string[][]> {
  const { gateway } = stack();
  const people: Account[] = ['user', 'admin', 'machine'];
  const machines = [['content:read'], ['content:list'], ['content:read', 'content:list']];
  const tokens = await Promise.all(people.map((account) => tokenOf(gateway, account)));
  // One after the other, because commands use the memory of auth's container.
  for (const scopes of machines) tokens.push(await clientToken(...scopes));
  const rows = unlisted.map(async (path) => {
    const cells = tokens.map(async (token) => {
      const headers = { Authorization: `Bearer ${token}` };
      return String((await fetch(`${gateway}/api/content/${path}`, { headers })).status);
    });
    return [`GET /api/content/${path}`, ...(await Promise.all(cells))];
  });
  const titles = machines.map((scopes) => scopes.map((scope) => `\`${scope}\``).join(', '));
  return [['request', ...people.map(nameOf), ...titles], ...(await Promise.all(rows))];
}

test('docs/reference/authorization.md matches the replies of the platform', async () => {
  const text = `# Authorization

For developers of clients and for operators: who may call each endpoint, and what users get for objects of others.

Generated by test/contract/authorization.test.ts; do not edit. The test sends each request to a running platform, and fails and rewrites this page when the replies differ.

## Endpoints

Each column is a caller: without a token, after a login with a temporary password, a user with the role that heads the column, and the demo machine client \`content-server\`. This client has the scope \`cache:clear\` alone; to read content, a machine client needs \`content:read\`. "–" is 401 or 403. Machine clients have only the scopes that they were created with. \`/pulse\` also accepts its own cookie.

${table(await allowed())}

## Unlisted models

The status of each request with the default \`CONTENT_UNLISTED_MODELS=accesscode\`. The last columns are machine clients with these scopes. Without the scope \`content:list\`, the changes of all models leave access codes out. Models in \`CONTENT_RESTRICTED_MODELS\` also need \`content:restricted\` for each of these requests.

${table(await lists())}

## Objects of a user

The status of each request for an object that belongs to one user. 404: objects of other users look as if they did not exist. 403: the token may not call the endpoint at all. Users with the scope \`letters:write\` (role admin) read the letters of all users. Machine clients get 403, but with \`letters:write\` the replies to \`PATCH /api/letters/:id\` contain the letter.

${table(await ownership())}
`;
  expectPageIsCurrent(file, text);
}, 180_000);
