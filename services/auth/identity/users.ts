import type { Stores } from '../stores.ts';
import type { User } from '../user-store.ts';
import { IdentityFailure } from './failure.ts';
import type { Person } from './person.ts';
import type { IdentitySettings } from './settings.ts';

type LinkRules = Pick<IdentitySettings, 'linkByEmail' | 'allowUnverified'>;

/** Returns undefined if another user has the email. */
async function create({ users, identities, audit }: Stores, email: string, person: Person) {
  const { name = email.slice(0, 200), issuer } = person;
  const user = await users.create({ email, name, passwordHash: null, roles: ['user'] });
  if (!user) return undefined;
  await identities.link(person, user.id);
  await audit.add({ event: 'user_created', userId: user.id, details: { identity: issuer } });
  return user;
}

/**
 * Links the person to the user with this email, which the provider has verified. Refuses a user who is linked to
 * another subject there: an attacker who first used the victim's email would share the account.
 */
async function linkByEmail({ users, identities, audit }: Stores, email: string, person: Person) {
  const found = await users.findByEmail(email);
  const user = found && (await users.lock(found.id));
  if (!user) throw new IdentityFailure('identity_email_taken', 'the user was deleted meanwhile', found?.id);
  if (!(await identities.link(person, user.id))) {
    throw new IdentityFailure('identity_email_taken', 'the user is linked to another subject there', user.id);
  }
  await audit.add({ event: 'identity_linked', userId: user.id, details: { identity: person.issuer } });
  return user;
}

/**
 * Returns the user linked to issuer and subject (OpenID Connect Core §5.7), else the user with the same email if
 * linking is allowed, else a new user. The user stays locked until the transaction ends. Rejects with IdentityFailure.
 */
export async function findOrCreateUser(stores: Stores, person: Person, rules: LinkRules): Promise<User> {
  await stores.identities.lock(person);
  const linked = await stores.identities.findUserId(person);
  const known = linked === undefined ? undefined : await stores.users.lock(linked);
  // An administrator may have unlinked the identity while this transaction waited for the lock.
  const isLinked = known && (await stores.identities.findUserId(person)) === known.id;
  const user = isLinked ? known : await createOrLink(stores, person, rules);
  if (user.disabled) throw new IdentityFailure('identity_user_disabled', 'disabled', user.id);
  await stores.identities.updateEmail(person);
  return user;
}

/** Cancels the user's unfinished logins that began at the identity provider. */
export async function cancelIdentityLogins({ identityCodes, mfa }: Stores, userId: number): Promise<void> {
  await identityCodes.deleteOf(userId);
  await mfa.deleteIdentityLoginsOf(userId);
}

async function createOrLink(stores: Stores, person: Person, rules: LinkRules): Promise<User> {
  const { email, emailVerified } = person;
  if (email === undefined) {
    throw new IdentityFailure('identity_email_missing', 'neither the ID token nor userinfo has an email');
  }
  if (!emailVerified && !rules.allowUnverified) {
    // Otherwise an attacker could create an account with a victim's email, and keep a link to it. The error is the same
    // if a user has the email: it must not show who has an account.
    throw new IdentityFailure('identity_email_unverified', 'the provider has not verified the email');
  }
  const created = await create(stores, email, person);
  if (created) return created;
  if (rules.linkByEmail && emailVerified) return linkByEmail(stores, email, person);
  const reason = rules.linkByEmail ? 'the email is not verified there' : 'IDENTITY_LINK_BY_EMAIL is false';
  throw new IdentityFailure('identity_email_taken', reason);
}
