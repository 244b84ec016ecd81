import { createHmac } from 'node:crypto';
import { HttpError, unavailable } from '@content-platform/chassis';
import type { AccessTokens } from '../access-tokens.ts';
import { byUser } from '../audit-store.ts';
import { isToken, randomToken, sha256 } from './opaque-token.ts';
import { maxChainSteps, type NewSession, type FoundToken, type SessionStore } from './session-store.ts';
import type { AuthDatabase, Stores } from '../stores.ts';
import type { User } from '../user-store.ts';

type Reason = 'expired' | 'revoked' | 'reused' | 'unknown';

type Login = Omit<NewSession, 'userId' | 'endsAt'>;

/** A longer refresh is rolled back: its client may have given up, and a repetition would count as theft. */
const longestRefreshMs = 5_000;

/** Returns the 400 of RFC 6749 §5.2. By `reason`, apps decide whether to also warn the user of a theft. */
export function invalidGrant(reason: Reason): HttpError<'invalid_grant'> {
  return new HttpError('invalid_grant', 'The refresh token or code is not valid. Log in again.', {
    details: [{ path: 'reason', message: reason }],
  });
}

/**
 * Opens and refreshes sessions. Each use replaces the refresh token (RFC 9700 §4.14.2) by a successor that is derived
 * from it with `secret`. So a client can repeat a refresh whose reply was lost, and two tabs stay on one chain of
 * tokens: a repeated refresh returns its end. `onReuse` is called for each stolen token.
 */
export function createSessions(
  database: Pick<AuthDatabase, 'transaction'>,
  tokens: AccessTokens,
  secret: Buffer,
  onReuse: () => void,
) {
  const successorOf = (token: string) => createHmac('sha256', secret).update(token).digest('base64url');

  /** Finds the session of a replaced token whose row was deleted, by following its chain of successors. */
  async function findDeleted(store: SessionStore, token: string): Promise<FoundToken | undefined> {
    const hashes: Buffer[] = [];
    let next = token;
    while (hashes.length < maxChainSteps) {
      next = successorOf(next);
      hashes.push(sha256(next));
    }
    const known = await store.findAny(hashes);
    const successor = known && (await store.findAndLock(known));
    // A row is deleted a day after its token was replaced, so no lost reply explains this use.
    return successor && { ...successor, state: successor.state === 'valid' ? 'reused' : successor.state };
  }

  /** Returns the token and its row, or those of its chain's end if all tokens before were replaced a moment ago. */
  async function newestOf(store: SessionStore, token: string) {
    let found = (await store.findAndLock(sha256(token))) ?? (await findDeleted(store, token));
    while (found?.state === 'valid' && found.replaced) {
      token = successorOf(token);
      found = await store.find(sha256(token));
    }
    return { newest: token, found };
  }

  return {
    /** Opens a session and records the login. Call it in the transaction of the login, which has locked the user. */
    async open({ sessions, audit }: Stores, user: User, login: Login, secondFactor?: string) {
      const { device, address, mustChangePassword, origin } = login;
      const refreshToken = randomToken();
      const endsAt = mustChangePassword ? user.tempPasswordExpiresAt! : undefined;
      const sessionId = await sessions.add({ ...login, userId: user.id, endsAt }, sha256(refreshToken));
      const details = {
        session: sessionId,
        device,
        ...(secondFactor && { factor: secondFactor }),
        ...(mustChangePassword && { password: 'temporary' }),
        ...(origin && { identity: origin.issuer }),
      };
      await audit.add({ ...byUser(user.id, address), event: 'login', details });
      const accessToken = tokens.forUser(user, sessionId, mustChangePassword);
      return { accessToken, refreshToken, sessionId };
    },

    /** Throws 400 `invalid_grant`. A token that was replaced earlier counts as stolen and ends the session. */
    async refresh(refreshToken: string, address: string, start = performance.now()) {
      if (!isToken(refreshToken)) throw invalidGrant('unknown');
      const outcome = await database.transaction(async ({ users, sessions, audit }) => {
        const { newest, found } = await newestOf(sessions, refreshToken);
        if (!found) return 'unknown';
        const { sessionId, userId, mustChangePassword, state } = found;
        if (state === 'reused') {
          const details = { session: sessionId };
          await audit.add({ event: 'refresh_token_reused', userId, address, details });
          await sessions.endOne(userId, sessionId);
          onReuse();
        }
        if (state !== 'valid') return state;
        const user = await users.findById(userId);
        if (!user) return 'revoked';
        const accessToken = tokens.forUser(user, sessionId, mustChangePassword);
        if (newest !== refreshToken) return { user, accessToken, refreshToken: newest };
        const successor = successorOf(refreshToken);
        await sessions.replace(sessionId, sha256(refreshToken), sha256(successor));
        if (performance.now() - start > longestRefreshMs) throw unavailable('It took too long. Repeat it.');
        return { user, accessToken, refreshToken: successor };
      });
      if (typeof outcome === 'string') throw invalidGrant(outcome);
      return outcome;
    },
  };
}
