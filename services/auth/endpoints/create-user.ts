import { actorOf, type Database, type Handler, HttpError } from '@content-platform/chassis';
import type { createUser as contract } from '@content-platform/contract';
import { toAccount } from '../replies.ts';
import { addUser } from '../administration.ts';
import type { PasswordPolicy } from '../passwords/password-policy.ts';
import type { Passwords } from '../passwords/passwords.ts';
import { createUserStore, type UserStore } from '../user-store.ts';

export interface CreateUserDeps {
  database: Database;
  users: UserStore;
  passwords: Passwords;
  policy: PasswordPolicy;
}

function taken(): HttpError<'email_taken'> {
  return new HttpError(409, 'email_taken', 'Another user has this address.');
}

export function createUser(deps: CreateUserDeps): Handler<typeof contract> {
  const { database, users, passwords, policy } = deps;

  async function hashOf(password: string, person: { email: string; name: string }): Promise<string> {
    const message = policy.complaint(password, person);
    if (message === undefined) return passwords.hash(password);
    const details = [{ path: 'body.password', message }];
    throw new HttpError(422, 'validation_failed', 'The request is not valid.', details);
  }

  return async ({ caller, body: { email, name, password, roles }, address }) => {
    async function check(): Promise<string | null> {
      // Before the work of a hash; two at the same time are told apart below.
      if (await users.findByEmail(email)) throw taken();
      return password === undefined ? null : hashOf(password, { email, name });
    }
    const passwordHash = await (password === undefined ? check() : passwords.admit(check));
    const user = await database.transaction(async (query) => {
      const id = await addUser(
        query,
        { email, name, passwordHash, roles },
        { actor: actorOf(caller), address },
      );
      if (id === undefined) throw taken();
      return (await createUserStore(query).findById(id))!;
    });
    return { status: 201, body: toAccount(user) };
  };
}
