import {
  type Database,
  HttpError,
  rowsOf,
  runInBatches,
  statements,
  unavailable,
} from '@content-platform/chassis';
import type { MediaFile } from '@content-platform/contract';
import { checkQuota, type Quota } from './quota.ts';

export interface NewFile extends Pick<MediaFile, 'mime' | 'bytes' | 'width' | 'height' | 'placeholder'> {
  userId: number;
  /** The first part of the file's keys in the store. */
  object: string;
  checksum: Buffer;
  name: string;
  variants: Omit<MediaFile['variants'][number], 'url'>[];
}

export interface File extends NewFile {
  id: number;
  createdAt: Date;
}

const columns = `id::float8 AS id, user_id::float8 AS "userId", object, checksum, mime, bytes, name, width, height,
  placeholder, variants, created_at AS "createdAt"`;

/** Returns the size of the upload and its variants; the variants of a PDF are the original itself. */
function storedBytes({ bytes, variants }: NewFile): number {
  const others = variants.filter(({ name }) => name !== 'original');
  return others.reduce((sum, variant) => sum + variant.bytes, bytes);
}

/** A pending object has files without a row: of an upload, or to be removed. Uploads of this age count as abandoned. */
const abandonedAge = `interval '1 hour'`;

/** Makes the objects of the rows `file` pending. Backdates them, so that `forget` accepts them at once. */
const addPending = `pending AS (
  INSERT INTO media.pending_object (object, store, created_at)
  SELECT object, store, created_at - ${abandonedAge} FROM file
  ON CONFLICT DO NOTHING)`;

export type FileStore = ReturnType<typeof createFileStore>;

/** Stores rows of media.file, whose files are in `store`, up to `quota`. All functions throw the errors of `query`. */
export function createFileStore(
  { query, transaction }: Pick<Database, 'query' | 'transaction'>,
  store: string,
  quota: Quota = { bytes: Infinity, files: Infinity },
) {
  const { rows, first, run } = statements(query);

  async function findUpload(userId: number, checksum: Buffer, ask = query): Promise<File | undefined> {
    const text = `SELECT ${columns} FROM media.file WHERE user_id = $1 AND checksum = $2 AND store = $3`;
    return statements(ask).first<File>('find_upload', text, [userId, checksum, store]);
  }

  async function insert(file: NewFile, ask: Database['query']): Promise<File | undefined> {
    // If the files of the row are in another store, the new ones replace them, and the old ones are pending there.
    const text = `WITH file AS (SELECT * FROM media.file WHERE user_id = $1 AND checksum = $3 AND store <> $11),
                    ${addPending}
                  INSERT INTO media.file
                    (user_id, object, checksum, mime, bytes, name, width, height, placeholder, variants, store)
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
                  ON CONFLICT (user_id, checksum) DO UPDATE
                    SET object = excluded.object, name = excluded.name, placeholder = excluded.placeholder,
                        variants = excluded.variants, store = excluded.store
                    WHERE file.store IS DISTINCT FROM excluded.store
                  RETURNING ${columns}`;
    const { userId, object, checksum, mime, bytes, name, width, height, placeholder, variants } = file;
    const values = [userId, object, checksum, mime, bytes, name, width, height, placeholder];
    return statements(ask).first<File>('add_file', text, [...values, JSON.stringify(variants), store]);
  }

  return {
    /** Returns the file that this user uploaded with this checksum. */
    findUpload,
    /** Throws 413 if an upload of this size would exceed the user's quota. Concurrent uploads may use it up meanwhile. */
    checkQuota: (userId: number, bytes: number) => checkQuota(query, { userId, bytes }, quota),

    /** Records an upload whose files are about to be put into the store, so that a crash cannot leave unknown files. */
    begin({ object, userId }: Pick<NewFile, 'object' | 'userId'>): Promise<void> {
      const text = 'INSERT INTO media.pending_object (object, store, user_id) VALUES ($1, $2, $3)';
      return run('begin_upload', text, [object, store, userId]);
    },

    /**
     * Adds a file. If the user already has one with the same bytes, returns that one, which has another `object`. Throws
     * 413 if the file exceeds the user's quota, 401 if the user was erased since `begin`, and 503 if the files were
     * removed as abandoned since then.
     */
    async add(file: NewFile): Promise<File> {
      const { userId, checksum } = file;
      return transaction(async (ask) => {
        // Each upload of a user counts the files of the others.
        const lock = `SELECT pg_advisory_xact_lock(hashtextextended('media.user ' || $1, 0))`;
        await ask('lock_files_of_user', lock, [userId]);
        for (;;) {
          const known = await findUpload(userId, checksum, ask);
          if (known) return known;
          await checkQuota(ask, { userId, bytes: storedBytes(file) }, quota);
          // Nothing was added if `assignStore` gave the user's row this store in between: the next round finds the row.
          const added = await insert(file, ask);
          if (!added) continue;
          const end = 'DELETE FROM media.pending_object WHERE object = $1 RETURNING user_id';
          const { rows } = await ask<{ user_id: string | null }>('end_upload', end, [file.object]);
          if (!rows[0]) throw unavailable('The upload took too long. Repeat it.');
          if (rows[0].user_id === null)
            throw new HttpError('invalid_token', 'The user of this access token was deleted.');
          return added;
        }
      });
    },
    find(userId: number, id: number): Promise<File | undefined> {
      const text = `SELECT ${columns} FROM media.file WHERE user_id = $1 AND id = $2`;
      return first<File>('find_file', text, [userId, id]);
    },
    /** Returns the user's files below the id `before`, newest first. */
    list(userId: number, before = Number.MAX_SAFE_INTEGER, limit = 50): Promise<File[]> {
      const text = `SELECT ${columns} FROM media.file WHERE user_id = $1 AND id < $2
                    ORDER BY file.id DESC LIMIT $3`;
      return rows<File>('list_files', text, [userId, before, limit]);
    },
    /** Deletes the row and returns it; undefined if it does not exist. Its files in the store are then pending. */
    remove(userId: number, id: number): Promise<File | undefined> {
      const text = `WITH file AS (DELETE FROM media.file WHERE user_id = $1 AND id = $2 RETURNING *),
                      ${addPending}
                    SELECT ${columns} FROM file`;
      return first<File>('delete_file', text, [userId, id]);
    },

    /** Deletes the rows of these users, and cancels their uploads. The files in the store are then pending. */
    async eraseUsers(userIds: readonly number[]): Promise<void> {
      // Cancels first: an upload that ended before this has a row, which the next statement deletes.
      const uploads = 'UPDATE media.pending_object SET user_id = NULL WHERE user_id = ANY ($1)';
      await run('cancel_uploads', uploads, [userIds]);
      const text = `WITH file AS (DELETE FROM media.file WHERE id = ANY (ARRAY(
                      SELECT id FROM media.file WHERE user_id = ANY ($1) LIMIT 1000)) RETURNING *), ${addPending}
                    SELECT FROM file`;
      await runInBatches(query, 'erase_files', text, [userIds]);
    },

    /** Returns up to 10 objects, after `after`, whose files must be removed: of deleted files and of abandoned uploads. */
    async pending(after: string): Promise<string[]> {
      const text = `SELECT object FROM media.pending_object
                    WHERE object > $1 AND store = $2
                      AND (user_id IS NULL OR created_at < now() - ${abandonedAge})
                    ORDER BY object LIMIT 10`;
      const found = await rows<{ object: string }>('list_pending_objects', text, [after, store]);
      return found.map(({ object }) => object);
    },

    /** Forgets objects whose files were removed. A cancelled upload may still put files: its object stays an hour. */
    forget(objects: readonly string[]): Promise<void> {
      const text = `DELETE FROM media.pending_object
                    WHERE object = ANY ($1) AND store = $2 AND created_at < now() - ${abandonedAge}`;
      return run('forget_objects', text, [objects, store]);
    },
    /** Throws if files of deleted rows are in another store, from which this process cannot remove them. */
    async checkOtherStores(): Promise<void> {
      const text = `SELECT store FROM media.pending_object WHERE store <> $1 AND user_id IS NULL LIMIT 1`;
      const other = await first<{ store: string }>('find_other_store', text, [store]);
      if (other) throw new Error(`files to remove are in the store ${other.store}, not in ${store}`);
    },
    /** Assigns this store to rows from releases that did not record a store's name. */
    assignStore: () => run('adopt_files', 'UPDATE media.file SET store = $1 WHERE store IS NULL', [store]),

    /** Reads the files of all users in pages, and whether they are in this store. */
    all() {
      type Row = Pick<File, 'id' | 'object' | 'variants'> & { isHere: boolean };
      const text = `SELECT id::float8 AS id, object, variants, store = $2 AS "isHere" FROM media.file WHERE id > $1
                    ORDER BY file.id LIMIT 1000`;
      return rowsOf<Row>((last) => rows<Row>('list_all_files', text, [last?.id ?? 0, store]));
    },
    /** Deletes a row whose files are missing. */
    removeRow: (id: number, object: string) =>
      run('forget_file', 'DELETE FROM media.file WHERE id = $1 AND object = $2', [id, object]),
  };
}

export const schema = 'media';
