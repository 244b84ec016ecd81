import type { Database } from '@content-platform/chassis';
import { audit } from '../audit.ts';
import { createUserStore, type User } from '../user-store.ts';
import { IdentityFailure } from './failure.ts';
import type { Person } from './person.ts';

type Query = Database['query'];

async function findLinked(query: Query, { issuer, subject }: Person): Promise<User | undefined> {
  const text = 'SELECT user_id FROM auth.identity WHERE issuer = $1 AND subject = $2';
  const { rows } = await query<{ user_id: string }>('find_identity', text, [issuer, subject]);
  return rows[0] && createUserStore(query).lock(Number(rows[0].user_id));
}

/** False when the user is somebody else at this identity service already. */
async function link(query: Query, { issuer, subject }: Person, userId: number): Promise<boolean> {
  const text = `INSERT INTO auth.identity (issuer, subject, user_id) VALUES ($1, $2, $3)
                ON CONFLICT (user_id, issuer) DO NOTHING`;
  return (await query('add_identity', text, [issuer, subject, userId])).rowCount === 1;
}

/** Undefined when the address is taken. */
async function create(query: Query, email: string, person: Person): Promise<User | undefined> {
  const users = createUserStore(query);
  const { name = email, issuer } = person;
  const id = await users.create({ email, name: name.slice(0, 200), passwordHash: null, roles: ['user'] });
  if (id === undefined) return undefined;
  await link(query, person, id);
  await audit(query, { event: 'user_created', userId: id, details: { identity: issuer } });
  return users.findById(id);
}

/**
 * Takes somebody for the user who has their address. Only an address that the identity service has verified says that
 * they are the same, and only when nobody else came from there as this user: who was first under an address that was not
 * theirs would else share the account with its owner.
 */
async function linkByEmail(query: Query, email: string, person: Person): Promise<User> {
  const users = createUserStore(query);
  const found = await users.findByEmail(email);
  const user = found && (await users.lock(found.id));
  if (!user) throw new IdentityFailure('identity_email_taken', 'the user was deleted meanwhile', found?.id);
  if (!(await link(query, person, user.id))) {
    throw new IdentityFailure('identity_email_taken', 'the user is another subject there', user.id);
  }
  await audit(query, { event: 'identity_linked', userId: user.id, details: { identity: person.issuer } });
  return user;
}

/**
 * The user somebody is: known by issuer and subject alone (OpenID Connect Core §5.7), found by their address if `linking`
 * is allowed, or new. In a transaction, until whose end nobody disables or deletes them: who was deleted before is new.
 * Rejects with IdentityFailure.
 */
export async function userOf(query: Query, person: Person, linking: boolean): Promise<User> {
  const { issuer, subject, email, emailVerified } = person;
  // Two logins of somebody new at once would make two users of them.
  await query('lock_identity', 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [
    JSON.stringify([issuer, subject]),
  ]);
  let user = await findLinked(query, person);
  if (!user && email === undefined) {
    throw new IdentityFailure('identity_email_missing', 'neither the ID token nor userinfo has one');
  }
  user ??= await create(query, email!, person);
  if (!user) {
    if (!linking || !emailVerified) {
      const reason = linking ? 'the address is not verified there' : 'IDENTITY_LINK_BY_EMAIL is false';
      throw new IdentityFailure('identity_email_taken', reason);
    }
    user = await linkByEmail(query, email!, person);
  }
  if (user.disabled) throw new IdentityFailure('identity_user_disabled', 'disabled', user.id);
  return user;
}
