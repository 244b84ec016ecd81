import { createHash } from 'node:crypto';
import { createSlots, deleteOld, type Database } from '@content-platform/chassis';
import type { Platform } from '@content-platform/contract';

/** What a person is told of a device. */
export interface Device {
  id: number;
  platform: Platform | null;
  name: string | null;
  tokenEnd: string;
  registeredAt: Date;
  lastSeenAt: Date;
  stale: boolean;
}

export interface Registration {
  token: string;
  platform?: Platform | undefined;
  name?: string | undefined;
  appVersion?: string | undefined;
}

/** What the sender of messages is told. */
export interface DeviceToken {
  token: string;
  platform: Platform | null;
  lastSeenAt: Date;
}

/** What is known of a token after a message: `gone` when it leads to no device any more. */
export interface TokenFeedback {
  token: string;
  gone: boolean;
}

export interface Page<Item> {
  items: Item[];
  /** The id that the next page begins below; null: there is none. */
  next: number | null;
}

/** Devices a user can have. */
export const maxDevices = 20;
/** Days without a sign of life. */
const unseenDays = { stale: 60, removed: 270 };

/** A user's registrations wait for each other: not on all of the connections, and no longer for one than it lasts. */
const maxRegistering = 5;

const hashOf = (token: string) => createHash('sha256').update(token).digest();

// The whole token stays in the database: its end leaves out the first character of even the shortest.
const columns = `id, platform, name, right(substr(token, 2), 6) AS "tokenEnd", registered_at AS "registeredAt",
  last_seen_at AS "lastSeenAt", last_seen_at < now() - make_interval(days => ${unseenDays.stale}) AS stale`;

type Row = { id: string };

function pageOf<R extends Row>(rows: R[], limit: number): Page<Omit<R, 'id'> & { id: number }> {
  // PostgreSQL's bigint arrives as text.
  const items = rows.slice(0, limit).map((row) => ({ ...row, id: Number(row.id) }));
  return { items, next: rows.length > limit ? items.at(-1)!.id : null };
}

export type DeviceStore = ReturnType<typeof createDeviceStore>;

/** The devices, known by the SHA-256 of their tokens. Everything throws what `query` throws. */
export function createDeviceStore({ query, transaction }: Pick<Database, 'query' | 'transaction'>) {
  const registering = createSlots(maxRegistering);

  /** Those unseen for longest go until there is room for the one that has just come. */
  async function trim(ask: Database['query'], userId: number, newest: string): Promise<void> {
    // One that somebody holds is just leaving us; to wait for it could be a deadlock: they may wait for one of ours.
    const text = `DELETE FROM devices.device WHERE id IN (
                    SELECT id FROM devices.device WHERE id = ANY (ARRAY(
                      SELECT id FROM devices.device WHERE user_id = $1 AND id <> $2
                      ORDER BY last_seen_at DESC, id DESC OFFSET $3))
                    FOR UPDATE SKIP LOCKED)`;
    await ask('trim_devices', text, [userId, newest, maxDevices - 1]);
  }

  return {
    /**
     * Registers the device, or notes that it is still there; what is not given stays as it was. A token that another
     * user had is a new device of this one, and nothing of theirs is left.
     */
    register(userId: number, { token, platform, name, appVersion }: Registration): Promise<Device> {
      const text = `
        INSERT INTO devices.device AS known (user_id, token, token_hash, platform, name, app_version)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (token_hash) DO UPDATE SET
          id = CASE WHEN known.user_id = $1 THEN known.id ELSE excluded.id END,
          user_id = $1,
          platform = coalesce(excluded.platform, CASE WHEN known.user_id = $1 THEN known.platform END),
          name = coalesce(excluded.name, CASE WHEN known.user_id = $1 THEN known.name END),
          app_version = coalesce(excluded.app_version, CASE WHEN known.user_id = $1 THEN known.app_version END),
          registered_at = CASE WHEN known.user_id = $1 THEN known.registered_at ELSE excluded.registered_at END,
          last_seen_at = excluded.last_seen_at
        RETURNING ${columns}`;
      const values = [userId, token, hashOf(token), platform ?? null, name ?? null, appVersion ?? null];
      const work = async (ask: Database['query']) => {
        // Registrations of one user take turns, or each would leave the other's device uncounted.
        const turn = `SELECT pg_advisory_xact_lock(hashtextextended('devices.user ' || $1, 0))`;
        await ask('lock_devices_of_user', turn, [userId]);
        const { rows } = await ask<Omit<Device, 'id'> & Row>('register_device', text, values);
        const device = rows[0]!;
        await trim(ask, userId, device.id);
        return { ...device, id: Number(device.id) };
      };
      return registering.run(() => transaction(work));
    },

    /** Newest first, from below the id `before` on. */
    async list(userId: number, before: number | undefined, limit: number): Promise<Page<Device>> {
      const text = `SELECT ${columns} FROM devices.device
                    WHERE user_id = $1 AND ($2::bigint IS NULL OR id < $2) ORDER BY id DESC LIMIT $3`;
      const values = [userId, before ?? null, limit + 1];
      const { rows } = await query<Omit<Device, 'id'> & Row>('list_devices', text, values);
      return pageOf(rows, limit);
    },

    /** The same with whole tokens, for what sends the messages. */
    async listTokens(userId: number, before: number | undefined, limit: number): Promise<Page<DeviceToken>> {
      const text = `SELECT id, token, platform, last_seen_at AS "lastSeenAt" FROM devices.device
                    WHERE user_id = $1 AND ($2::bigint IS NULL OR id < $2) ORDER BY id DESC LIMIT $3`;
      const values = [userId, before ?? null, limit + 1];
      const { rows } = await query<DeviceToken & Row>('list_device_tokens', text, values);
      return pageOf(rows, limit);
    },

    /** False when the user has no such device. */
    async delete(userId: number, id: number): Promise<boolean> {
      const text = 'DELETE FROM devices.device WHERE user_id = $1 AND id = $2';
      return (await query('delete_device', text, [userId, id])).rowCount === 1;
    },

    /** The user's device with this token gets no messages any more; another user's stays. */
    async unregister(userId: number, token: string): Promise<void> {
      const text = 'DELETE FROM devices.device WHERE user_id = $1 AND token_hash = $2';
      await query('unregister_device', text, [userId, hashOf(token)]);
    },

    /**
     * Removes the devices whose tokens are gone. A token that is named more than once counts once, and is gone when one
     * of them says so. Returns how many devices were removed, and how many tokens belong to none.
     */
    async takeFeedback(feedback: readonly TokenFeedback[]): Promise<{ removed: number; unknown: number }> {
      // Locked in one order: two of these that name the same tokens must not wait for each other.
      const text = `
        WITH told AS (
          SELECT token_hash, bool_or(gone) AS gone FROM unnest($1::bytea[], $2::boolean[]) AS told (token_hash, gone)
          GROUP BY token_hash
        ), going AS (
          SELECT token_hash FROM devices.device
          WHERE token_hash IN (SELECT token_hash FROM told WHERE gone) ORDER BY token_hash FOR UPDATE
        ), removed AS (
          DELETE FROM devices.device WHERE token_hash IN (SELECT token_hash FROM going) RETURNING token_hash
        )
        SELECT count(removed.token_hash)::int AS removed, count(*) FILTER (WHERE removed.token_hash IS NULL AND (
            gone OR NOT EXISTS (SELECT FROM devices.device WHERE device.token_hash = told.token_hash)))::int AS unknown
        FROM told LEFT JOIN removed USING (token_hash)`;
      const values = [feedback.map(({ token }) => hashOf(token)), feedback.map(({ gone }) => gone)];
      return (await query<{ removed: number; unknown: number }>('take_feedback', text, values)).rows[0]!;
    },
  };
}

/** Removes those unseen for so long that nobody will come back to them. Throws what `query` throws. */
export async function forgetDevices(query: Database['query']): Promise<void> {
  const unseen = 'last_seen_at < now() - make_interval(days => $1)';
  await deleteOld(query, 'delete_unseen_devices', 'devices.device', unseen, [unseenDays.removed]);
}
