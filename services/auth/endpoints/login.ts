import { setTimeout as sleep } from 'node:timers/promises';
import { HttpError, type Handler, type Logger } from '@content-platform/chassis';
import type { login as contract } from '@content-platform/contract';
import { accessTokenLifetime, type AccessTokens } from '../access-tokens.ts';
import type { Logins } from '../metrics.ts';
import { isOutdated, type Passwords } from '../passwords.ts';
import type { User, UserStore } from '../user-store.ts';

export interface LoginDeps {
  users: UserStore;
  passwords: Passwords;
  tokens: AccessTokens;
  logins: Logins;
  logger: Logger;
}

/** A refused login is answered no earlier, so that the time does not tell what was wrong. Ms. */
const refusalMs = 400;

/** Timers may be early by a fraction of a millisecond, so the clock is asked. `time` as performance.now(). */
async function notBefore(time: number): Promise<void> {
  for (let left; (left = time - performance.now()) > 0;) await sleep(Math.ceil(left));
}

export function login({ users, passwords, tokens, logins, logger }: LoginDeps): Handler<typeof contract> {
  async function renewHash({ id, passwordHash }: User, password: string): Promise<void> {
    try {
      await users.replacePasswordHash(id, passwordHash, await passwords.hash(password));
    } catch (error) {
      logger.warn({ error, user_id: id }, 'the password hash was not renewed; the next login tries again');
    }
  }

  async function check(email: string, password: string): Promise<{ user: User | undefined; valid: boolean }> {
    let admitted = false;
    try {
      return await passwords.admit(async () => {
        admitted = true;
        const user = await users.findByEmail(email);
        return { user, valid: await passwords.verify(user?.passwordHash, password) };
      });
    } catch (error) {
      if (!admitted) logins.inc({ outcome: 'refused' });
      throw error;
    }
  }

  return async ({ body: { email, password } }) => {
    const start = performance.now();
    const { user, valid } = await check(email, password);
    if (!user || !valid || user.disabled) {
      const reason = !user ? 'unknown address' : !valid ? 'wrong password' : 'disabled';
      logins.inc({ outcome: 'failure' });
      logger.info({ reason, user_id: user?.id }, 'a login failed');
      await notBefore(start + refusalMs);
      throw new HttpError(401, 'invalid_credentials', 'The email or the password is wrong.');
    }
    if (isOutdated(user.passwordHash)) await renewHash(user, password);
    logins.inc({ outcome: 'success' });
    logger.info({ user_id: user.id }, 'logged in');
    return {
      status: 200,
      body: {
        token: tokens.forUser(user),
        token_type: 'Bearer',
        expires_in: accessTokenLifetime,
        user: { id: user.id, email: user.email, name: user.name, created_at: user.createdAt.toISOString() },
      },
    };
  };
}
