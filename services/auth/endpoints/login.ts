import { type Database, HttpError, type Handler, type Logger } from '@content-platform/chassis';
import type { login as contract } from '@content-platform/contract';
import { accessTokenLifetime } from '../access-token-lifetime.ts';
import { audit } from '../audit.ts';
import { deviceName } from '../sessions/device-name.ts';
import type { Guesses } from '../guessing/guesses.ts';
import type { Logins } from '../metrics.ts';
import { isOutdated, type Passwords } from '../passwords/passwords.ts';
import { createRefusals } from '../passwords/refusals.ts';
import { createSessionStore } from '../sessions/session-store.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { recognise, type PasswordKind } from '../passwords/temporary-password.ts';
import { createUserStore, type User, type UserStore } from '../user-store.ts';

export interface LoginDeps {
  database: Database;
  users: UserStore;
  passwords: Passwords;
  guesses: Guesses;
  sessions: Sessions;
  logins: Logins;
  logger: Logger;
}

/** Why nobody was let in, for those who run the platform. */
function reasonOf(user: User | undefined, kind: PasswordKind | undefined): string {
  if (!user) return 'unknown address';
  if (!kind) return 'wrong password';
  if (user.disabled) return 'disabled';
  return kind === 'temporary' ? 'temporary password used or expired' : 'changed meanwhile';
}

export function login(deps: LoginDeps): Handler<typeof contract> {
  const { database, users, passwords, guesses, sessions, logins, logger } = deps;
  const { isKnownNetwork } = createSessionStore(database.query);
  const beforeRefusal = createRefusals();

  async function renewHash({ id, passwordHash }: User, password: string): Promise<void> {
    if (passwordHash === null || !isOutdated(passwordHash)) return;
    try {
      await users.replacePasswordHash(id, passwordHash, await passwords.hash(password));
    } catch (error) {
      logger.warn({ error, user_id: id }, 'the password hash was not renewed; the next login tries again');
    }
  }

  /**
   * Undefined when the user was disabled or given another password since it was checked, and for a temporary password
   * that was used before or has expired: it opens one session, which lasts no longer than it would have itself.
   */
  async function openSession(user: User, kind: PasswordKind, device: string, address: string) {
    return database.transaction(async (query) => {
      // With the roles that they have now: one that was taken away meanwhile ended the sessions before this one.
      const store = createUserStore(query);
      const temporary = kind === 'temporary';
      const held = temporary
        ? await store.spendTemporaryPassword(user.id, user.tempPasswordHash)
        : await store.hold(user.id, user.passwordHash);
      if (!held) return undefined;
      const endsAt = temporary ? held.tempPasswordExpiresAt! : undefined;
      const opened = await sessions.open(query, held, {
        device,
        address,
        mustChangePassword: temporary,
        endsAt,
      });
      const details = { session: opened.sessionId, device, ...(temporary && { password: 'temporary' }) };
      await audit(query, { event: 'login', userId: user.id, actor: `user:${user.id}`, address, details });
      return opened;
    });
  }

  /** Throws 429 unchecked after too many failures. For an unknown address it does all that it does for a known one. */
  async function attempt(email: string, password: string, device: string, address: string) {
    let { account, user } = await users.lookUp(email);
    const known = user?.id ?? 0;
    const isKnown = (network: string) => isKnownNetwork(known, network);
    let kind: PasswordKind | undefined;
    async function check() {
      kind = await recognise(passwords, user, password);
      return user && kind && !user.disabled ? openSession(user, kind, device, address) : undefined;
    }
    const { result: opened, limited } = await guesses.guard({ account, address, isKnown }, async () => {
      const first = await check();
      if (first || kind !== 'own' || !isOutdated(user!.passwordHash!)) return first;
      // Another login of this person has renewed the hash meanwhile.
      ({ user } = await users.lookUp(email));
      return check();
    });
    return { user, kind, opened, limited };
  }

  /** Counts those that are not let try. `start` as performance.now(). */
  async function admit<T>(work: () => Promise<T>, start: number): Promise<T> {
    let admitted = false;
    try {
      return await passwords.admit(() => {
        admitted = true;
        return work();
      });
    } catch (error) {
      if (!admitted) logins.inc({ outcome: 'refused' });
      if (error instanceof HttpError && error.error === 'rate_limited') {
        logins.inc({ outcome: 'limited' });
        await beforeRefusal(start);
      }
      throw error;
    }
  }

  return async ({ body: { email, password }, header, address }) => {
    const start = performance.now();
    const device = deviceName(header('user-agent'));
    const { user, kind, opened, limited } = await admit(
      () => attempt(email, password, device, address),
      start,
    );
    if (!user || !opened) {
      const reason = reasonOf(user, kind);
      logins.inc({ outcome: limited ? 'limited' : 'failure' });
      logger.info({ reason, user_id: user?.id }, 'a login failed');
      const entry = { userId: user?.id, address, details: { reason } };
      await Promise.all([beforeRefusal(start), audit(database.query, { event: 'login_failed', ...entry })]);
      throw limited ?? new HttpError(401, 'invalid_credentials', 'The email or the password is wrong.');
    }
    const temporary = kind === 'temporary';
    if (!temporary) await renewHash(user, password);
    logins.inc({ outcome: 'success' });
    logger.info({ user_id: user.id }, 'logged in');
    return {
      status: 200,
      body: {
        token: opened.accessToken,
        token_type: 'Bearer',
        expires_in: accessTokenLifetime,
        refresh_token: opened.refreshToken,
        user: { id: user.id, email: user.email, name: user.name, created_at: user.createdAt.toISOString() },
        ...(temporary && { must_change_password: true }),
      },
    };
  };
}
