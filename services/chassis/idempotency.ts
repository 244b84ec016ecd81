import { randomUUID } from 'node:crypto';
import type { Endpoint } from '@content-platform/contract';
import { HttpError, invalidFields } from './http-error.ts';
import { migrate, type MigrationOptions } from './migrations.ts';
import type { Database } from './postgres.ts';
import { deleteExpired } from './retention.ts';
import type { AnyReply } from './service.ts';
import { actorOf, type Caller } from './tokens.ts';

interface RepeatableRequest {
  endpoint: Endpoint;
  caller: Caller;
  /** The Idempotency-Key header; undefined: every repetition runs the work. */
  key: string | undefined;
  /** Hash of the request, equal for its repetitions. */
  fingerprint: string;
}

/**
 * Stores the reply in the transaction of the request's change, so that both take effect or neither. Throws 409 if
 * another request has claimed the key.
 */
type StoreReply = (query: Database['query'], reply: AnyReply) => Promise<void>;

export type Idempotency = ReturnType<typeof createIdempotency>;

/** Time after which another request may claim the key: longer than the longest request, an upload of 75 s. */
const claimSeconds = 90;
/** Maximum number of stored keys of a caller, so that replies cannot fill the disk. */
export const maxKeys = 1_000;

function keyInUse(): HttpError<'idempotency_key_in_use'> {
  const message = 'The first request with this Idempotency-Key is in progress. Retry later.';
  return new HttpError('idempotency_key_in_use', message, { headers: { 'Retry-After': '1' } });
}

const wellFormed = /^[\x20-\x7e]{1,255}$/;

/** Creates the table of `createIdempotency` in the service's schema. */
export async function migrateIdempotency(options: Omit<MigrationOptions, 'folder' | 'table'>): Promise<void> {
  const folder = new URL('idempotency/', import.meta.url);
  await migrate({ ...options, folder, table: 'idempotency_migration' });
}

/** Stores replies by Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07) in the schema's idempotency_key. */
export function createIdempotency(query: Database['query'], schema: string) {
  const table = `${schema}.idempotency_key`;
  const recent = `caller = $1 AND created_at > now() - interval '24 hours'`;
  const thisKey = 'caller = $1 AND endpoint = $2 AND key = $3';

  /** Claims a new, expired or abandoned key, up to the caller's maximum. Replaces errors that earlier releases stored. */
  async function claimKey(id: string[], fingerprint: string, attempt: string): Promise<boolean> {
    const text = `INSERT INTO ${table} AS held (caller, endpoint, key, fingerprint, run, held_until)
                  SELECT $1, $2, $3, $4, $5::uuid, now() + interval '${claimSeconds} s'
                  WHERE (SELECT count(*) FROM ${table} WHERE ${recent}) < ${maxKeys} OR EXISTS (
                    SELECT FROM ${table} WHERE ${thisKey})
                  ON CONFLICT (caller, endpoint, key) DO UPDATE
                  SET fingerprint = excluded.fingerprint, run = excluded.run, held_until = excluded.held_until,
                      reply = NULL, created_at = now()
                  WHERE held.created_at < now() - interval '24 hours'
                     OR held.reply -> 'error' IS NOT NULL
                     OR (held.reply IS NULL AND held.held_until < now() AND held.fingerprint = excluded.fingerprint)`;
    const { rowCount } = await query('take_idempotency_key', text, [...id, fingerprint, attempt]);
    return rowCount === 1;
  }

  async function storeReply(execute: Database['query'], id: string[], attempt: string, reply: AnyReply) {
    const text = `UPDATE ${table} SET reply = $5 WHERE ${thisKey} AND run = $4`;
    const { rowCount } = await execute('keep_reply', text, [...id, attempt, JSON.stringify({ reply })]);
    return rowCount === 1;
  }

  async function refuseTooMany([caller]: string[]): Promise<void> {
    const text = `SELECT count(*)::int AS keys,
                    ceil(extract(epoch FROM min(created_at) + interval '24 hours' - now()))::int AS seconds
                  FROM ${table} WHERE ${recent}`;
    const { rows } = await query<{ keys: number; seconds: number }>('count_idempotency_keys', text, [caller]);
    const { keys, seconds } = rows[0]!;
    if (keys < maxKeys) return;
    const message = `You have used ${maxKeys} idempotency keys in 24 hours. Retry later.`;
    throw new HttpError('rate_limited', message, {
      headers: { 'Retry-After': String(Math.max(1, seconds)) },
    });
  }

  async function release(id: string[], attempt: string): Promise<void> {
    // A stored reply belongs to a change that was committed, although the commit seemed to fail.
    const text = `DELETE FROM ${table} WHERE ${thisKey} AND run = $4 AND reply IS NULL`;
    await query('release_idempotency_key', text, [...id, attempt]);
  }

  /** Returns the stored reply of the first request; undefined if its key was released meanwhile. */
  async function findReply(id: string[], fingerprint: string): Promise<AnyReply | undefined> {
    type Row = { fingerprint: string; reply: { reply: AnyReply } | null };
    const text = `SELECT fingerprint, reply FROM ${table} WHERE ${thisKey}`;
    const { rows } = await query<Row>('find_idempotency_key', text, id);
    if (!rows[0]) return undefined;
    if (rows[0].fingerprint !== fingerprint) {
      const message = 'A different request used this Idempotency-Key. Use a new key.';
      throw new HttpError('idempotency_key_reused', message);
    }
    if (rows[0].reply) return rows[0].reply.reply;
    throw keyInUse();
  }

  async function runAndStore<R extends AnyReply>(
    id: string[],
    attempt: string,
    work: (storeReply: StoreReply) => Promise<R>,
  ): Promise<R> {
    let isStored = false;
    try {
      const reply = await work(async (execute, made) => {
        if (!(await storeReply(execute, id, attempt, made))) throw keyInUse();
        isStored = true;
      });
      if (!isStored) await storeReply(query, id, attempt, reply);
      return reply;
    } catch (error) {
      // If deleting the key fails, it is free after `claimSeconds`.
      await release(id, attempt).catch(() => undefined);
      throw error;
    }
  }

  return {
    /**
     * Runs `work`, or returns the reply stored for the key in the last 24 hours. Errors are not stored. `work` must be
     * repeatable or call `storeReply` in its transaction: if a process dies, a request after `claimSeconds` runs it
     * again. Throws 422 for a malformed or reused key, 409 while the first request runs, 429 for too many keys.
     */
    async once<R extends AnyReply>(
      { endpoint, caller, key, fingerprint }: RepeatableRequest,
      work: (storeReply: StoreReply) => Promise<R>,
    ): Promise<R> {
      if (key === undefined) return work(async () => undefined);
      if (!wellFormed.test(key)) {
        const message = 'Must be 1 to 255 printable ASCII characters.';
        throw invalidFields([{ path: 'header.Idempotency-Key', message }]);
      }
      const id = [actorOf(caller), endpoint.name, key];
      const attempt = randomUUID();
      while (!(await claimKey(id, fingerprint, attempt))) {
        const stored = await findReply(id, fingerprint);
        if (stored) return stored as never;
        await refuseTooMany(id);
      }
      return runAndStore(id, attempt, work);
    },
    deleteExpired: () =>
      deleteExpired(query, 'delete_idempotency_keys', table, `created_at < now() - interval '24 hours'`),
    /** Deletes the keys of these users, and replies with an object of theirs (`user_id`). */
    async erase(userIds: readonly number[]): Promise<void> {
      const text = `DELETE FROM ${table} WHERE caller = ANY ($1) OR reply #>> '{reply,body,user_id}' = ANY ($2::text[])`;
      await query('erase_idempotency_keys', text, [userIds.map((id) => `user:${id}`), userIds]);
    },
  };
}
