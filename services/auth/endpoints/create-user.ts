import { actorOf, type Handler, HttpError } from '@content-platform/chassis';
import type { createUser as contract } from '@content-platform/contract';
import { addUser } from '../administration.ts';
import type { PasswordPolicy } from '../passwords/password-policy.ts';
import type { Passwords } from '../passwords/passwords.ts';
import { toAccount } from '../replies.ts';
import type { AuthDatabase } from '../stores.ts';

export interface CreateUserDeps {
  database: AuthDatabase;
  passwords: Passwords;
  policy: PasswordPolicy;
}

function taken(): HttpError<'email_taken'> {
  return new HttpError('email_taken', 'Another user has this address.');
}

export function createUser(deps: CreateUserDeps): Handler<typeof contract> {
  const { database, passwords, policy } = deps;

  async function hashOf(password: string, person: { email: string; name: string }): Promise<string> {
    const message = policy.complaint(password, person);
    if (message === undefined) return passwords.hash(password);
    const details = [{ path: 'body.password', message }];
    throw new HttpError('validation_failed', 'The request is not valid.', { details });
  }

  return async ({ caller, body: { email, name, password, roles }, address }) => {
    async function check(): Promise<string | null> {
      // Saves the work of a hash. Of two simultaneous requests the transaction refuses one.
      if (await database.users.findByEmail(email)) throw taken();
      return password === undefined ? null : hashOf(password, { email, name });
    }
    const passwordHash = await (password === undefined ? check() : passwords.admit(check));
    const user = await database.transaction(async (stores) => {
      const by = { actor: actorOf(caller), address };
      const id = await addUser(stores, { email, name, passwordHash, roles }, by);
      if (id === undefined) throw taken();
      return (await stores.users.findById(id))!;
    });
    return { status: 201, body: toAccount(user) };
  };
}
