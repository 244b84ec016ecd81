import { randomUUID } from 'node:crypto';
import type { Endpoint, ErrorEnvelope } from '@content-platform/contract';
import { deleteOld } from './delete-old.ts';
import { HttpError } from './http-error.ts';
import { migrate, type MigrationOptions } from './migrations.ts';
import type { Database } from './postgres.ts';
import { actorOf, type Caller } from './tokens.ts';

/** A request that may come again. */
export interface RepeatableRequest {
  endpoint: Endpoint;
  caller: Caller;
  /** Idempotency-Key as it came; undefined: the request is carried out whenever it comes. */
  key: string | undefined;
  /** The same for the same request: a hash of what was sent. */
  fingerprint: string;
}

interface AnyReply {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

/** What is kept of a reply; an error is thrown again. */
type Kept =
  { reply: AnyReply } | { error: Pick<HttpError, 'status' | 'error' | 'message' | 'details' | 'headers'> };

export interface Idempotency {
  /**
   * Does `work` unless a request with this key did it in the last 24 hours, whose reply comes back then, errors below
   * 500 included. `work` must bear being done again: a process that dies in it leaves the key to the next request once
   * a minute has passed. Throws 422 when the key is malformed or came with another request, 409 while the first is
   * under way, and what `work` throws.
   */
  once<R extends AnyReply>(request: RepeatableRequest, work: () => Promise<R>): Promise<R>;
  /** Deletes the keys of more than 24 hours ago. */
  forget(): Promise<void>;
}

/** Longer than any request may take: an upload may take 75. */
const holdSeconds = 90;
const wellFormed = /^[\x20-\x7e]{1,255}$/;

function malformed(): HttpError<'validation_failed'> {
  const details = [
    { path: 'header.Idempotency-Key', message: 'Must be 1 to 255 printable ASCII characters.' },
  ];
  return new HttpError(422, 'validation_failed', 'The request is not valid.', details);
}

function keptError({ status, error, message, details, headers }: HttpError): Kept {
  return { error: { status, error, message, details, headers } };
}

function restore(kept: Kept): AnyReply {
  if ('reply' in kept) return kept.reply;
  const { status, error, message, details, headers } = kept.error;
  throw new HttpError(status as never, error, message, details as ErrorEnvelope['details'], { headers });
}

/** Makes the table of `createIdempotency` in the service's own schema. */
export async function migrateIdempotency(options: Omit<MigrationOptions, 'folder' | 'table'>): Promise<void> {
  const folder = new URL('idempotency/', import.meta.url);
  await migrate({ ...options, folder, table: 'idempotency_migration' });
}

/** Replies kept by Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07), in the schema's idempotency_key. */
export function createIdempotency(query: Database['query'], schema: string): Idempotency {
  const table = `${schema}.idempotency_key`;
  const mine = 'caller = $1 AND endpoint = $2 AND key = $3';

  /** Takes the key: a new one, one that is too old, or one whose first request was given up. */
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

  /** The reply of the first request; undefined when its key was released just now. */
  async function lookUp(id: string[], fingerprint: string): Promise<Kept | undefined> {
    type Row = { fingerprint: string; reply: Kept | null };
    const text = `SELECT fingerprint, reply FROM ${table} WHERE ${mine}`;
    const { rows } = await query<Row>('find_idempotency_key', text, id);
    if (!rows[0]) return undefined;
    if (rows[0].fingerprint !== fingerprint) {
      throw new HttpError(422, 'idempotency_key_reused', 'This key came with another request.');
    }
    if (rows[0].reply) return rows[0].reply;
    const message = 'The first request with this key is under way.';
    throw new HttpError(409, 'idempotency_key_in_use', message, undefined, {
      headers: { 'Retry-After': '1' },
    });
  }

  async function carryOut<R extends AnyReply>(id: string[], run: string, work: () => Promise<R>): Promise<R> {
    try {
      const reply = await work();
      await keep(id, run, { reply });
      return reply;
    } catch (error) {
      if (error instanceof HttpError && error.status < 500) await keep(id, run, keptError(error));
      // It may succeed next time. When even this fails, the key is free in a minute.
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
      await deleteOld(query, 'delete_idempotency_keys', table, `created_at < now() - interval '24 hours'`);
    },
  };
}
