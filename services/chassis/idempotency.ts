import { randomUUID } from 'node:crypto';
import type { Endpoint, ErrorEnvelope } from '@content-platform/contract';
import { HttpError } from './http-error.ts';
import { migrate, type MigrationOptions } from './migrations.ts';
import type { Database } from './postgres.ts';
import { deleteExpired } from './retention.ts';
import type { AnyReply } from './service.ts';
import { actorOf, type Caller } from './tokens.ts';

/** A request that a client may repeat. */
export interface RepeatableRequest {
  endpoint: Endpoint;
  caller: Caller;
  /** The Idempotency-Key header; undefined: every repetition does the work. */
  key: string | undefined;
  /** Hash of the request, equal for its repetitions. */
  fingerprint: string;
}

/** A stored reply, or an error that is thrown again. */
type Kept = { reply: AnyReply } | { error: Pick<HttpError, 'error' | 'message' | 'details' | 'headers'> };

export interface Idempotency {
  /**
   * Does `work`, or returns the reply (or throws the error below 500) of the request that did it with the same key in the
   * last 24 hours. `work` must be repeatable: if a process dies in it, a request after `holdSeconds` does it again. Throws
   * 422 if the key is malformed or belongs to another request, 409 while the first request is under way, and the errors of
   * `work`.
   */
  once<R extends AnyReply>(request: RepeatableRequest, work: () => Promise<R>): Promise<R>;
  /** Deletes keys older than 24 hours. */
  forget(): Promise<void>;
}

/** Longer than the longest request, an upload, which may take 75 s. */
const holdSeconds = 90;
const wellFormed = /^[\x20-\x7e]{1,255}$/;

function malformed(): HttpError<'validation_failed'> {
  const details = [
    { path: 'header.Idempotency-Key', message: 'Must be 1 to 255 printable ASCII characters.' },
  ];
  return new HttpError('validation_failed', 'The request is not valid.', { details });
}

function keptError({ error, message, details, headers }: HttpError): Kept {
  return { error: { error, message, details, headers } };
}

function restore(kept: Kept): AnyReply {
  if ('reply' in kept) return kept.reply;
  const { error, message, details, headers } = kept.error;
  throw new HttpError(error, message, { details: details as ErrorEnvelope['details'], headers });
}

/** Creates the table of `createIdempotency` in the service's schema. */
export async function migrateIdempotency(options: Omit<MigrationOptions, 'folder' | 'table'>): Promise<void> {
  const folder = new URL('idempotency/', import.meta.url);
  await migrate({ ...options, folder, table: 'idempotency_migration' });
}

/** Stores replies by Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07) in the schema's idempotency_key. */
export function createIdempotency(query: Database['query'], schema: string): Idempotency {
  const table = `${schema}.idempotency_key`;
  const mine = 'caller = $1 AND endpoint = $2 AND key = $3';

  /** Takes the key if it is new, has expired, or its first request was abandoned. */
  async function take(id: string[], fingerprint: string, run: string): Promise<boolean> {
    const text = `INSERT INTO ${table} AS held (caller, endpoint, key, fingerprint, run, held_until)
                  VALUES ($1, $2, $3, $4, $5, now() + interval '${holdSeconds} s')
                  ON CONFLICT (caller, endpoint, key) DO UPDATE
                  SET fingerprint = excluded.fingerprint, run = excluded.run, held_until = excluded.held_until,
                      reply = NULL, created_at = now()
                  WHERE held.created_at < now() - interval '24 hours'
                     OR (held.reply IS NULL AND held.held_until < now() AND held.fingerprint = excluded.fingerprint)`;
    const { rowCount } = await query('take_idempotency_key', text, [...id, fingerprint, run]);
    return rowCount === 1;
  }

  async function keep(id: string[], run: string, kept: Kept): Promise<void> {
    const text = `UPDATE ${table} SET reply = $5 WHERE ${mine} AND run = $4`;
    await query('keep_reply', text, [...id, run, JSON.stringify(kept)]);
  }

  async function release(id: string[], run: string): Promise<void> {
    await query('release_idempotency_key', `DELETE FROM ${table} WHERE ${mine} AND run = $4`, [...id, run]);
  }

  /** Returns the stored reply of the first request; undefined if its key was released meanwhile. */
  async function lookUp(id: string[], fingerprint: string): Promise<Kept | undefined> {
    type Row = { fingerprint: string; reply: Kept | null };
    const text = `SELECT fingerprint, reply FROM ${table} WHERE ${mine}`;
    const { rows } = await query<Row>('find_idempotency_key', text, id);
    if (!rows[0]) return undefined;
    if (rows[0].fingerprint !== fingerprint) {
      throw new HttpError('idempotency_key_reused', 'This key came with another request.');
    }
    if (rows[0].reply) return rows[0].reply;
    const message = 'The first request with this key is under way.';
    throw new HttpError('idempotency_key_in_use', message, { headers: { 'Retry-After': '1' } });
  }

  async function carryOut<R extends AnyReply>(id: string[], run: string, work: () => Promise<R>): Promise<R> {
    try {
      const reply = await work();
      await keep(id, run, { reply });
      return reply;
    } catch (error) {
      if (error instanceof HttpError && error.status < 500) await keep(id, run, keptError(error));
      // A repetition may succeed. If the release fails, the key is free after holdSeconds.
      else await release(id, run).catch(() => undefined);
      throw error;
    }
  }

  return {
    async once({ endpoint, caller, key, fingerprint }, work) {
      if (key === undefined) return work();
      if (!wellFormed.test(key)) throw malformed();
      const id = [actorOf(caller), endpoint.name, key];
      const run = randomUUID();
      while (!(await take(id, fingerprint, run))) {
        const kept = await lookUp(id, fingerprint);
        if (kept) return restore(kept) as never;
      }
      return carryOut(id, run, work);
    },
    async forget() {
      await deleteExpired(
        query,
        'delete_idempotency_keys',
        table,
        `created_at < now() - interval '24 hours'`,
      );
    },
  };
}
