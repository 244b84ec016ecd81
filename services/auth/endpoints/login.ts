import { HttpError, type Handler } from '@content-platform/chassis';
import type { login as contract } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';
import { beginMfaLogin } from '../mfa/second-factor.ts';
import { isOutdated } from '../passwords/passwords.ts';
import { matchPassword, type PasswordKind } from '../passwords/temporary-password.ts';
import { toLogin } from '../replies.ts';
import { deviceName } from '../sessions/device-name.ts';
import type { User } from '../user-store.ts';

type Client = Record<'device' | 'address', string>;

/** Written to the log and the audit log, never sent to the client. */
type Reason =
  | 'unknown address'
  | 'wrong password'
  | 'disabled'
  | 'temporary password used or expired'
  | 'changed meanwhile';

const refused = (reason: Reason, user?: User) => ({ ok: false, user, reason }) as const;

export function login(context: AuthContext): Handler<typeof contract> {
  const { database, passwords, throttle, sessions, logins, equalizeFailureTime, logger } = context;

  /**
   * Returns undefined if the user or password was changed since the check, or the temporary password is used or
   * expired.
   */
  async function openSession(user: User, kind: PasswordKind, { device, address }: Client) {
    return database.transaction(async (stores) => {
      const isTemporary = kind === 'temporary';
      // The token gets the current roles, because removing a role ends only the sessions that exist at that time.
      const current = isTemporary
        ? await stores.users.consumeTemporaryPassword(user.id, user.tempPasswordHash)
        : await stores.users.lockIfUnchanged(user.id, user.passwordHash);
      // The user may have set up a second factor since the check.
      if (!current || current.hasMfa) return undefined;
      return sessions.open(stores, current, { device, address, mustChangePassword: isTemporary });
    });
  }

  /** Throws 401 `mfa_required`, which is no failed guess, or returns the refusal of a used or expired password. */
  async function requireMfa(user: User, kind: PasswordKind, address: string) {
    const { id: userId, passwordHash, tempPasswordHash } = user;
    if (kind === 'temporary' && !(await database.users.hasTemporaryPassword(userId, tempPasswordHash)))
      return refused('temporary password used or expired', user);
    const first = kind === 'own' ? { passwordHash: passwordHash! } : { tempPasswordHash: tempPasswordHash! };
    throw await beginMfaLogin(database, { userId, first }, address);
  }

  /** Opens a session or returns a refusal. Does the same work for an unknown user as for a known one. */
  async function checkAndOpen(user: User | undefined, password: string, client: Client) {
    const kind = await matchPassword(passwords, user, password);
    if (!user) return refused('unknown address');
    if (!kind) return refused('wrong password', user);
    if (user.disabled) return refused('disabled', user);
    if (user.hasMfa) return requireMfa(user, kind, client.address);
    const opened = await openSession(user, kind, client);
    if (opened) return { ok: true, user, kind, opened } as const;
    return refused(kind === 'own' ? 'changed meanwhile' : 'temporary password used or expired', user);
  }

  /** Throws 429 without a check after too many failures. */
  async function attempt(email: string, password: string, client: Client) {
    const { account, user } = await database.users.lookUp(email);
    const isKnown = (network: string) => database.sessions.isKnownNetwork(user?.id ?? 0, network);
    return throttle.run({ account, address: client.address, isKnown }, async () => {
      const first = await checkAndOpen(user, password, client);
      if (first.ok || first.reason !== 'changed meanwhile') return first;
      // A concurrent login of this user may have renewed the hash.
      return checkAndOpen(await database.users.findByEmail(email), password, client);
    });
  }

  /** Runs `work`, and counts attempts refused without a check (429, 503). `start` is a performance.now() time. */
  async function admit<T>(work: () => Promise<T>, start: number): Promise<T> {
    let admitted = false;
    try {
      return await passwords.limit(() => {
        admitted = true;
        return work();
      });
    } catch (error) {
      if (!admitted) logins.inc({ outcome: 'refused' });
      if (error instanceof HttpError && error.error === 'rate_limited') {
        logins.inc({ outcome: 'limited' });
        await equalizeFailureTime(start);
      }
      throw error;
    }
  }

  async function renewHash({ id, passwordHash }: User, password: string): Promise<void> {
    if (passwordHash === null || !isOutdated(passwordHash)) return;
    // bcrypt reads 72 bytes: a mistyped end would be accepted now, and become the password.
    if (passwordHash.startsWith('$2') && Buffer.byteLength(password) > 72) return;
    try {
      await database.users.replacePasswordHash(id, passwordHash, await passwords.hash(password));
    } catch (error) {
      logger.warn({ error, user_id: id }, 'password hash not renewed; the next login retries');
    }
  }

  return async ({ body: { email, password }, header, address }) => {
    const start = performance.now();
    const client = { device: deviceName(header('user-agent')), address };
    const { outcome, limited } = await admit(() => attempt(email, password, client), start);
    if (!outcome.ok) {
      const { user, reason } = outcome;
      logins.inc({ outcome: limited ? 'limited' : 'failure' });
      logger.info({ reason, user_id: user?.id }, 'a login failed');
      await Promise.all([
        equalizeFailureTime(start),
        database.audit.add({ event: 'login_failed', userId: user?.id, address, details: { reason } }),
      ]);
      throw limited ?? new HttpError('invalid_credentials', 'The email or the password is wrong.');
    }
    const { user, kind, opened } = outcome;
    if (kind === 'own') await renewHash(user, password);
    logins.inc({ outcome: 'success' });
    logger.info({ user_id: user.id }, 'logged in');
    return { status: 200, body: toLogin(user, opened, kind === 'temporary') };
  };
}
