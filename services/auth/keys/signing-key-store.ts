import { statements, type Database } from '@content-platform/chassis';
import type { jwks, Reply } from '@content-platform/contract';
import { maxTokenSeconds } from '../access-tokens.ts';

export interface NewSigningKey {
  /** The published public key (RFC 7517). */
  publicJwk: Reply<typeof jwks>['body']['keys'][number];
  /** The private key, sealed with AUTH_KEY_SECRET and the kid as context. */
  sealed: Buffer;
}

export interface StoredSigningKey extends NewSigningKey {
  kid: string;
  /** Time until the key signs, in ms by the database's clock; negative if it already signs. */
  signsIn: number;
}

/** A key is retired when a newer one has been signing for $1 seconds: the last token of the old key has expired. */
const retired = `EXISTS (SELECT FROM auth.signing_key AS newer
                         WHERE newer.signs_from > key.signs_from
                           AND newer.signs_from < clock_timestamp() - make_interval(secs => $1))`;

/** Stores the keys that sign access tokens. All functions throw the errors of `query`. */
export function createSigningKeyStore(query: Database['query']) {
  const { rows, first, run } = statements(query);
  return {
    /** Prevents other processes from adding or resealing keys until the transaction ends. */
    lock: () => run('lock_signing_keys', `SELECT pg_advisory_xact_lock(hashtext('auth.signing_key'))`),

    /** Returns the keys that are not retired, newest first. */
    list() {
      const text = `SELECT kid, public_jwk AS "publicJwk", sealed_private_key AS sealed,
                      extract(epoch FROM signs_from - clock_timestamp())::float8 * 1000 AS "signsIn"
                    FROM auth.signing_key AS key WHERE NOT ${retired} ORDER BY signs_from DESC`;
      return rows<StoredSigningKey>('list_signing_keys', text, [maxTokenSeconds]);
    },

    /** Returns the kids of the keys that are not retired. */
    async listKids(): Promise<string[]> {
      const text = `SELECT kid FROM auth.signing_key AS key WHERE NOT ${retired} ORDER BY kid`;
      return (await rows<{ kid: string }>('list_kids', text, [maxTokenSeconds])).map(({ kid }) => kid);
    },

    /** Stores a key, which is published immediately. Returns the time from which it signs. */
    async add({ publicJwk, sealed }: NewSigningKey, signsInSeconds: number): Promise<Date> {
      const text = `INSERT INTO auth.signing_key (kid, public_jwk, sealed_private_key, signs_from)
                    VALUES ($1, $2, $3, clock_timestamp() + make_interval(secs => $4)) RETURNING signs_from AS at`;
      const values = [publicJwk.kid, publicJwk, sealed, signsInSeconds];
      return (await first<{ at: Date }>('create_signing_key', text, values))!.at;
    },

    /** Deletes all keys; their tokens become invalid. */
    deleteAll: () => run('delete_all_signing_keys', 'DELETE FROM auth.signing_key'),

    /** Deletes the retired keys. */
    deleteExpired: () =>
      run('delete_signing_keys', `DELETE FROM auth.signing_key AS key WHERE ${retired}`, [maxTokenSeconds]),
  };
}
