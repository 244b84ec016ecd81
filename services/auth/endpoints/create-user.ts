import { actorOf, type Handler, HttpError, invalidFields } from '@content-platform/chassis';
import type { createUser as contract } from '@content-platform/contract';
import { addUser } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { toAccount } from '../replies.ts';
import { requireRecentLogin } from '../sessions/recent-login.ts';

function taken(): HttpError<'email_taken'> {
  return new HttpError('email_taken', 'Another user has this address.');
}

export function createUser({ database, passwords, policy }: AuthContext): Handler<typeof contract> {
  async function hashOf(password: string, person: { email: string; name: string }): Promise<string> {
    // Saves the cost of a hash. The transaction refuses one of two simultaneous requests.
    if (await database.users.findByEmail(person.email)) throw taken();
    const message = policy.findProblem(password, person);
    if (message === undefined) return passwords.hash(password);
    throw invalidFields([{ path: 'body.password', message }]);
  }

  return async ({ caller, body: { password, ...person }, address }) => {
    if (person.roles.some((role) => role !== 'user')) await requireRecentLogin(database.sessions, caller);
    const passwordHash =
      password === undefined ? null : await passwords.limit(() => hashOf(password, person));
    const by = { actor: actorOf(caller), address };
    const user = await database.transaction((stores) => addUser(stores, { ...person, passwordHash }, by));
    if (!user) throw taken();
    return { status: 201, body: toAccount(user) };
  };
}
