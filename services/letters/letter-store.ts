import { type Database, deleteExpired, runInBatches, statements } from '@content-platform/chassis';
import type { Letter, LetterEvent, LetterState } from '@content-platform/contract';

/** The owner of letters: the user with this id, or any user. */
type LetterOwner = number | 'any';

export interface NewLetter {
  userId: number;
  title: string;
  state: LetterState;
  webforms: readonly { webform_id: number; required: boolean }[];
}

/** An entry of a letter's history. */
export interface HistoryEntry {
  event: LetterEvent;
  details: Record<string, unknown>;
}

interface Row extends Omit<Letter, 'created_at' | 'updated_at'> {
  created_at: Date;
  updated_at: Date;
}

interface HistoryRow extends HistoryEntry {
  id: number;
  at: Date;
  actor: string;
}

// The ETag is a hash of the reply, whose fields have this order. Another order or a new field changes every ETag.
const columns = `id::float8 AS id, user_id::float8 AS user_id, title, state,
  (SELECT coalesce(json_agg(json_build_object('webform_id', webform_id, 'required', required,
            'skipped', skipped_at IS NOT NULL, 'skipped_at', skipped_at, 'reason', reason) ORDER BY webform_id), '[]')
   FROM letters.webform WHERE letter_id = letter.id) AS webforms,
  version::float8 AS version, created_at, updated_at`;
/** `$2`: the result of `ownerValue`. */
const hasOwner = '($2::bigint IS NULL OR user_id = $2)';

/** History entries of a letter within 24 hours, above which its user cannot add more: they could fill the disk. */
const maxDailyEntries = 1_000;

const ownerValue = (owner: LetterOwner) => (owner === 'any' ? null : owner);

/** Converts a row to a letter. Columns with times are Dates; times within `json_agg` are text in PostgreSQL's format. */
function toLetter(row: Row): Letter {
  return {
    ...row,
    webforms: row.webforms.map((webform) => ({
      ...webform,
      skipped_at: webform.skipped_at && new Date(webform.skipped_at).toISOString(),
    })),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

const toEntry = <Entry extends HistoryRow>(row: Entry) => ({ ...row, at: row.at.toISOString() });

export type LetterStore = ReturnType<typeof createLetterStore>;

/** Stores letters. All functions throw the errors of `query`. */
export function createLetterStore(query: Database['query']) {
  const { rows, first, affects, run } = statements(query);

  async function find(id: number, owner: LetterOwner): Promise<Letter | undefined> {
    const text = `SELECT ${columns} FROM letters.letter WHERE id = $1 AND ${hasOwner}`;
    const row = await first<Row>('find_letter', text, [id, ownerValue(owner)]);
    return row && toLetter(row);
  }

  return {
    find,

    /** Returns the letter and locks it until the transaction ends. */
    async lock(id: number, owner: LetterOwner): Promise<Letter | undefined> {
      const text = `SELECT FROM letters.letter WHERE id = $1 AND ${hasOwner} FOR UPDATE`;
      const exists = await affects('lock_letter', text, [id, ownerValue(owner)]);
      // Reads it in a second statement: one that waited for the lock returns the webforms as they were before the wait.
      return exists ? find(id, owner) : undefined;
    },

    /** Returns the user's letters with ids below `before`, newest first. The export of personal data needs every letter. */
    async list(userId: number, state: LetterState | undefined, before: number | undefined, limit: number) {
      const text = `SELECT ${columns} FROM letters.letter
                    WHERE user_id = $1 AND ($2::text IS NULL OR state = $2) AND ($3::bigint IS NULL OR id < $3)
                    ORDER BY letter.id DESC LIMIT $4`;
      const values = [userId, state ?? null, before ?? null, limit];
      return (await rows<Row>('list_letters', text, values)).map(toLetter);
    },

    /** Returns the letter's history entries with ids below `before`, newest first. */
    async history(id: number, before: number | undefined, limit: number) {
      const text = `SELECT id::float8 AS id, at, event, actor, details FROM letters.history
                    WHERE letter_id = $1 AND ($2::bigint IS NULL OR id < $2) ORDER BY history.id DESC LIMIT $3`;
      const found = await rows<HistoryRow>('list_letter_history', text, [id, before ?? null, limit]);
      return found.map((row) => toEntry(row));
    },

    /** Returns a reader of the history of the user's letters: the newest letter first, up to `limit` entries after `last`. */
    historyOf: (userId: number, limit: number) => async (last?: { letter_id: number; id: number }) => {
      const text = `SELECT history.id::float8 AS id, at, event, actor, details, letter_id::float8 AS letter_id
                    FROM letters.letter JOIN letters.history ON letter_id = letter.id
                    WHERE user_id = $1
                      AND ($2::bigint IS NULL OR letter.id <= $2 AND (letter.id < $2 OR history.id < $3))
                    ORDER BY letter.id DESC, history.id DESC LIMIT $4`;
      const values = [userId, last?.letter_id ?? null, last?.id ?? null, limit];
      const found = await rows<HistoryRow & { letter_id: number }>('export_history', text, values);
      return found.map((row) => toEntry(row));
    },

    /** Returns the seconds until the letter's user may change it, 24 hours after the 1,000th newest entry; 0: now. */
    async secondsUntilChange(id: number): Promise<number> {
      const text = `SELECT ceil(extract(epoch FROM at + interval '24 hours' - now()))::int AS seconds
                    FROM letters.history WHERE letter_id = $1 ORDER BY id DESC OFFSET $2 LIMIT 1`;
      const entry = await first<{ seconds: number }>('find_daily_limit', text, [id, maxDailyEntries - 1]);
      return Math.max(0, entry?.seconds ?? 0);
    },

    /** Skips the webform or changes the reason; null: no longer skips it. Call `saveChange` afterwards. */
    setSkip(id: number, webformId: number, skip: { reason: string | null } | null): Promise<void> {
      const text = `UPDATE letters.webform
                    SET skipped_at = CASE WHEN $3 THEN coalesce(skipped_at, clock_timestamp()) END, reason = $4
                    WHERE letter_id = $1 AND webform_id = $2`;
      return run('skip_webform', text, [id, webformId, skip !== null, skip?.reason ?? null]);
    },

    /** Saves the letter's title and state, its next version, and the history entries of `actor`. */
    async saveChange(
      { id, title, state }: Pick<Letter, 'id' | 'title' | 'state'>,
      actor: string,
      entries: readonly HistoryEntry[],
    ): Promise<Letter> {
      // Not now(), the start of the transaction: after a wait for the lock it may be earlier than the previous change.
      const text = `WITH changed AS (
                      UPDATE letters.letter
                      SET title = $2, state = $3, version = version + 1, updated_at = clock_timestamp()
                      WHERE id = $1 RETURNING updated_at)
                    INSERT INTO letters.history (letter_id, at, actor, event, details)
                    SELECT $1, updated_at, $4, event, details
                    FROM changed, json_to_recordset($5) AS entry (event text, details json)`;
      await run('change_letter', text, [id, title, state, actor, JSON.stringify(entries)]);
      return (await find(id, 'any'))!;
    },

    /** Creates a letter and returns its id; undefined if the given `id` is taken. */
    async create(letter: NewLetter, actor: string, id?: number): Promise<number | undefined> {
      const { userId, title, state, webforms } = letter;
      // Two statements, because `coalesce($7, nextval(…))` needs rights on the sequence, which the service lacks.
      const insert =
        id === undefined
          ? 'INSERT INTO letters.letter (user_id, title, state) VALUES ($1, $2, $3)'
          : `INSERT INTO letters.letter (user_id, title, state, id) OVERRIDING SYSTEM VALUE
             VALUES ($1, $2, $3, $7) ON CONFLICT (id) DO NOTHING`;
      const text = `WITH made AS (${insert} RETURNING id, created_at),
                    forms AS (
                      INSERT INTO letters.webform (letter_id, webform_id, required)
                      SELECT id, webform_id, required
                      FROM made, json_to_recordset($4) AS form (webform_id bigint, required boolean)),
                    noted AS (
                      INSERT INTO letters.history (letter_id, at, actor, event, details)
                      SELECT id, created_at, $5, 'created', $6 FROM made)
                    SELECT id::float8 AS id FROM made`;
      const details = { title, state, webforms };
      const values = [userId, title, state, JSON.stringify(webforms), actor, details];
      if (id !== undefined) values.push(id);
      return (await first<{ id: number }>('create_letter', text, values))?.id;
    },
  };
}

/** Deletes the letters of these users, and their ids in the history of other letters. Throws the errors of `query`. */
export async function eraseLetters(query: Database['query'], userIds: readonly number[]): Promise<void> {
  // Before the letters, in batches: a letter gets up to 1,000 entries a day, in time too many for its deletion.
  const ofUsers = 'letter_id IN (SELECT id FROM letters.letter WHERE user_id = ANY ($1))';
  await deleteExpired(query, 'erase_history', 'letters.history', ofUsers, [userIds]);
  const letters = `DELETE FROM letters.letter WHERE id = ANY (ARRAY(
                     SELECT id FROM letters.letter WHERE user_id = ANY ($1) LIMIT 20))`;
  await runInBatches(query, 'erase_letters', letters, [userIds], 20);
  const history = `UPDATE letters.history SET actor = 'user' WHERE id = ANY (ARRAY(
                     SELECT id FROM letters.history WHERE actor = ANY ($1) LIMIT 1000))`;
  await runInBatches(query, 'erase_actors', history, [userIds.map((id) => `user:${id}`)]);
}
