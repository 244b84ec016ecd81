import { createHash } from 'node:crypto';
import {
  createSemaphore,
  deleteExpired,
  type Database,
  HttpError,
  statements,
} from '@content-platform/chassis';
import type { Body, Device, registerFcmToken } from '@content-platform/contract';

type Query = Database['query'];

export const maxDevices = 20;
/** Days since the device was last seen. */
const unseenDays = { stale: 60, removed: 270 };

/** Below the size of the connection pool, because registrations of one user hold a connection while they wait. */
const maxRegistering = 5;

/** Key of the advisory lock that orders registrations and `endSessions`. */
const endingLock = `hashtext('devices.ended_session')`;

const hashOf = (token: string) => createHash('sha256').update(token).digest();

/** Returns a DELETE that locks devices in a fixed order, so that two with the same devices cannot deadlock. */
const deleteInOrder = (condition: string) => `
  WITH locked AS (SELECT token_hash FROM devices.device WHERE ${condition} ORDER BY token_hash FOR UPDATE)
  DELETE FROM devices.device WHERE token_hash IN (SELECT token_hash FROM locked)`;

// `token_end` is never the complete token: that of a token of six characters or fewer lacks the first one.
const columns = `id::float8 AS id, platform, name, right(substr(token, 2), 6) AS token_end, registered_at, last_seen_at,
  last_seen_at < now() - make_interval(days => ${unseenDays.stale}) AS stale`;

interface Row extends Omit<Device, 'registered_at' | 'last_seen_at'> {
  registered_at: Date;
  last_seen_at: Date;
}

const toDevice = <R extends Row>(row: R) => ({
  ...row,
  registered_at: row.registered_at.toISOString(),
  last_seen_at: row.last_seen_at.toISOString(),
});

export type DeviceStore = ReturnType<typeof createDeviceStore>;

/** Stores devices by the SHA-256 of their tokens. All functions throw the errors of `query`. */
export function createDeviceStore({ query, transaction }: Pick<Database, 'query' | 'transaction'>) {
  const { rows, first, affects, run } = statements(query);
  const registering = createSemaphore(maxRegistering);

  /** Returns a function that reads devices with `more` columns. */
  function lister<More extends object>(operation: string, more = '') {
    const text = `SELECT ${columns}${more} FROM devices.device
                  WHERE user_id = $1 AND ($2::bigint IS NULL OR id < $2) ORDER BY device.id DESC LIMIT $3`;
    return async (userId: number, before: number | undefined, limit: number) => {
      const found = await rows<Row & More>(operation, text, [userId, before ?? null, limit]);
      return found.map((row) => toDevice(row));
    };
  }

  /** Deletes the user's least recently seen devices beyond the maximum, but never the newest one. */
  async function trim(ask: Query, userId: number, newest: number): Promise<void> {
    // A locked device is just moving to another user; waiting for its lock could be a deadlock with that registration.
    const text = `DELETE FROM devices.device WHERE id IN (
                    SELECT id FROM devices.device WHERE id = ANY (ARRAY(
                      SELECT id FROM devices.device WHERE user_id = $1 AND id <> $2
                      ORDER BY last_seen_at DESC, id DESC OFFSET $3)) FOR UPDATE SKIP LOCKED)`;
    await ask('trim_devices', text, [userId, newest, maxDevices - 1]);
  }

  return {
    /**
     * Registers the device or updates when it was last seen; omitted fields keep their values. The token of another user
     * becomes a new device of this user, without the data of the old one. The device belongs to the session and is deleted
     * when the session ends. Throws 401 if it has ended. `signal` ends the wait for other registrations.
     */
    register(userId: number, sessionId: number, device: Body<typeof registerFcmToken>, signal?: AbortSignal) {
      const { token, platform = null, name = null, app_version = null } = device;
      const text = `
        INSERT INTO devices.device AS known (user_id, token, token_hash, platform, name, app_version, session_id)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (token_hash) DO UPDATE SET
          id = CASE WHEN known.user_id = $1 THEN known.id ELSE excluded.id END,
          user_id = $1,
          session_id = excluded.session_id,
          platform = coalesce(excluded.platform, CASE WHEN known.user_id = $1 THEN known.platform END),
          name = coalesce(excluded.name, CASE WHEN known.user_id = $1 THEN known.name END),
          app_version = coalesce(excluded.app_version, CASE WHEN known.user_id = $1 THEN known.app_version END),
          registered_at = CASE WHEN known.user_id = $1 THEN known.registered_at ELSE excluded.registered_at END,
          last_seen_at = excluded.last_seen_at
        RETURNING ${columns}`;
      const values = [userId, token, hashOf(token), platform, name, app_version, sessionId];
      const work = async (ask: Query) => {
        // Serializes the registrations of a user, which would otherwise not count each other's devices.
        const lock = `SELECT pg_advisory_xact_lock(hashtextextended('devices.user ' || $1, 0))`;
        await ask('lock_devices_of_user', lock, [userId]);
        // `endSessions` either waits for this lock and then deletes the device, or is done: the next query sees that.
        await ask('lock_ended_sessions', `SELECT pg_advisory_xact_lock_shared(${endingLock})`);
        const findEnded = 'SELECT FROM devices.ended_session WHERE session_id = $1';
        if ((await ask('find_ended_session', findEnded, [sessionId])).rowCount) {
          throw new HttpError('invalid_token', 'The session of this access token has ended.');
        }
        const row = (await statements(ask).first<Row>('register_device', text, values))!;
        await trim(ask, userId, row.id);
        return toDevice(row);
      };
      return registering.run(() => transaction(work), signal);
    },

    /** Returns the id in auth's feed of ended sessions up to which `endSessions` was called. */
    async endedSessionPosition(): Promise<number> {
      const text = 'SELECT after::float8 AS after FROM devices.ended_session_position';
      return (await first<{ after: number }>('read_ended_position', text))!.after;
    },

    /** Deletes the devices of sessions that ended, and stores how far the feed was read. */
    endSessions(sessionIds: readonly number[], position: number): Promise<void> {
      return transaction(async (ask) => {
        await ask('lock_ended_sessions', `SELECT pg_advisory_xact_lock(${endingLock})`);
        const add = `INSERT INTO devices.ended_session (session_id) SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING`;
        await ask('add_ended_sessions', add, [sessionIds]);
        const remove = deleteInOrder('session_id = ANY ($1::bigint[])');
        await ask('delete_devices_of_sessions', remove, [sessionIds]);
        await ask('store_ended_position', 'UPDATE devices.ended_session_position SET after = $1', [position]);
      });
    },

    eraseUsers: (userIds: readonly number[]) =>
      run('erase_devices', deleteInOrder('user_id = ANY ($1)'), [userIds]),

    /** Returns the user's devices with ids below `before`, newest first. */
    list: lister('list_devices'),
    /** Works like `list`, but with complete tokens, for the sender of messages. */
    listTokens: lister<{ token: string }>('list_device_tokens', ', token'),
    /** Works like `list`, but with everything except the token, with which others could send messages. */
    listForExport: lister<{ app_version: string | null }>('export_devices', ', app_version'),

    /** Returns false if the user has no such device. */
    delete: (userId: number, id: number) =>
      affects('delete_device', 'DELETE FROM devices.device WHERE user_id = $1 AND id = $2', [userId, id]),

    /** Deletes the device with this token if it belongs to the user. */
    unregister(userId: number, token: string): Promise<void> {
      const text = 'DELETE FROM devices.device WHERE user_id = $1 AND token_hash = $2';
      return run('unregister_device', text, [userId, hashOf(token)]);
    },

    /** Removes the devices of tokens that are `gone`. Returns the numbers of removed devices and of unknown tokens. */
    async applyFeedback(feedback: readonly { token: string; gone: boolean }[]) {
      const text = `
        WITH sent AS (
          SELECT token_hash, bool_or(gone) AS gone FROM unnest($1::bytea[], $2::boolean[]) AS sent (token_hash, gone)
          GROUP BY token_hash
        ), removed AS (
          ${deleteInOrder('token_hash IN (SELECT token_hash FROM sent WHERE gone)')} RETURNING token_hash
        )
        SELECT count(removed.token_hash)::int AS removed, count(*) FILTER (WHERE removed.token_hash IS NULL AND (
            gone OR NOT EXISTS (SELECT FROM devices.device WHERE device.token_hash = sent.token_hash)))::int AS unknown
        FROM sent LEFT JOIN removed USING (token_hash)`;
      const values = [feedback.map(({ token }) => hashOf(token)), feedback.map(({ gone }) => gone)];
      return (await first<{ removed: number; unknown: number }>('take_feedback', text, values))!;
    },
  };
}

/** Deletes devices that were not seen for 270 days. Throws the errors of `query`. */
export async function deleteUnseenDevices(query: Query): Promise<void> {
  const unseen = 'last_seen_at < now() - make_interval(days => $1)';
  await deleteExpired(query, 'delete_unseen_devices', 'devices.device', unseen, [unseenDays.removed]);
}

/** Deletes ended sessions after a day; their access tokens lived for 15 minutes at most. Throws the errors of `query`. */
export const deleteEndedSessions = (query: Query) =>
  deleteExpired(query, 'delete_ended_sessions', 'devices.ended_session', `at < now() - interval '1 day'`);
