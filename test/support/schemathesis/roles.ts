import { randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { createUser, machine, newAddress } from '../accounts.ts';
import { admin } from '../admin.ts';

type Person = Awaited<ReturnType<typeof newPerson>>;

/** An entry of a Web Fuzzing Commons auth file: how schemathesis obtains a user's token. */
interface Login {
  name: string;
  loginEndpointAuth: object;
}

/** Callers, as the results name them. The caller that can delete most runs last. */
export const roles = [
  'anonymous',
  'content server',
  'machine with the other scopes',
  'user',
  'sre',
  'admin',
] as const;

export interface Caller {
  name: (typeof roles)[number];
  logins: Login[];
  /** Two users of the role who must not see each other's data; schemathesis alternates between them. */
  peers: Person[];
  /** The user for requests that end sessions. */
  sessionUser?: Person;
}

function login(name: string, endpoint: string, body: object, token: string): Login {
  return {
    name,
    loginEndpointAuth: {
      verb: 'POST',
      endpoint,
      headers: [{ name: 'X-Forwarded-For', value: newAddress() }],
      contentType: 'application/json',
      payloadRaw: JSON.stringify(body),
      token: {
        extractFrom: 'body',
        extractSelector: token,
        sendIn: 'header',
        sendName: 'Authorization',
        sendTemplate: 'Bearer {token}',
      },
    },
  };
}

async function newPerson(role: contract.Role) {
  const email = `schemathesis-${randomUUID()}@example.com`;
  const password = `own passphrase ${randomUUID()}`;
  const { id } = await createUser({ email, password, name: 'Sue Schema', roles: [role] });
  return { id, email, password };
}

/** Returns all users of a role, including the one for requests that end sessions. */
export const peopleOf = ({ peers, sessionUser }: Caller): Person[] => peers.concat(sessionUser ?? []);

async function person(role: contract.Role): Promise<Caller> {
  const people = [await newPerson(role), await newPerson(role)];
  const logins = people.map(({ email, password }, index) =>
    login(`${role}-${index + 1}`, '/api/login', { email, password }, '/token'),
  );
  return { name: role, logins, peers: people, sessionUser: await newPerson(role) };
}

function client(name: Caller['name'], id: string, secret: string): Caller {
  const body = { grant_type: 'client_credentials', client_id: id, client_secret: secret };
  return { name, logins: [login(id, '/api/token', body, '/access_token')], peers: [] };
}

/** Creates all callers: anonymous, users of each role, the content server, and a client with every other scope. */
export async function newCallers(): Promise<Caller[]> {
  const others = contract.machineScopes.filter((scope) => scope !== 'cache:clear');
  const id = `schemathesis-${randomUUID()}`.slice(0, 30);
  const secret = await admin('create-client', id, ...others.flatMap((scope) => ['--scope', scope]));
  return [
    { name: 'anonymous', logins: [], peers: [] },
    client('content server', machine.id, machine.secret),
    client('machine with the other scopes', id, secret),
    await person('user'),
    await person('sre'),
    await person('admin'),
  ];
}
