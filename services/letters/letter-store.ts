import type { Database } from '@content-platform/chassis';
import type { Letter, LetterEvent, LetterState } from '@content-platform/contract';

/** Whose letters: those of the user with this id, or anybody's. */
export type Whose = number | 'anybody';

export interface NewLetter {
  userId: number;
  title: string;
  state: LetterState;
  webforms: readonly { webform_id: number; required: boolean }[];
}

/** What has happened, for the letter's history. */
export interface Happening {
  event: LetterEvent;
  details: Record<string, unknown>;
}

interface Row {
  id: string;
  user_id: string;
  title: string;
  state: LetterState;
  webforms: Letter['webforms'];
  version: string;
  created_at: Date;
  updated_at: Date;
}

interface HistoryRow extends Happening {
  id: string;
  at: Date;
  actor: string;
}

const columns = `id, user_id, title, state, version, created_at, updated_at,
  (SELECT coalesce(json_agg(json_build_object('webform_id', webform_id, 'required', required,
            'skipped', skipped_at IS NOT NULL, 'skipped_at', skipped_at, 'reason', reason) ORDER BY webform_id), '[]')
   FROM letters.webform WHERE letter_id = letter.id) AS webforms`;
const mine = '($2::bigint IS NULL OR user_id = $2)';

const ownerOf = (whose: Whose) => (whose === 'anybody' ? null : whose);

function iso(time: string | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}

/** As it goes over the wire: PostgreSQL's bigint arrives as text, and times in JSON as it writes them. */
function toLetter(row: Row): Letter {
  return {
    id: Number(row.id),
    user_id: Number(row.user_id),
    title: row.title,
    state: row.state,
    webforms: row.webforms.map((webform) => ({ ...webform, skipped_at: iso(webform.skipped_at) })),
    version: Number(row.version),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

export type LetterStore = ReturnType<typeof createLetterStore>;

/** The letters. Everything throws what `query` throws. */
export function createLetterStore(query: Database['query']) {
  async function find(id: number, whose: Whose): Promise<Letter | undefined> {
    const text = `SELECT ${columns} FROM letters.letter WHERE id = $1 AND ${mine}`;
    const { rows } = await query<Row>('find_letter', text, [id, ownerOf(whose)]);
    return rows[0] && toLetter(rows[0]);
  }

  return {
    find,

    /** The letter as it is until the transaction ends: whoever else wants to change it waits. */
    async lock(id: number, whose: Whose): Promise<Letter | undefined> {
      const text = `SELECT FROM letters.letter WHERE id = $1 AND ${mine} FOR UPDATE`;
      const { rowCount } = await query('lock_letter', text, [id, ownerOf(whose)]);
      // Read by a statement of its own: the one that waited sees the webforms as they were before the wait.
      return rowCount === 1 ? find(id, whose) : undefined;
    },

    /** Newest first, from below the id `before` on. */
    async list(userId: number, state: LetterState | undefined, before: number | undefined, limit: number) {
      const text = `SELECT ${columns} FROM letters.letter
                    WHERE user_id = $1 AND ($2::text IS NULL OR state = $2) AND ($3::bigint IS NULL OR id < $3)
                    ORDER BY id DESC LIMIT $4`;
      const values = [userId, state ?? null, before ?? null, limit];
      const { rows } = await query<Row>('list_letters', text, values);
      return rows.map(toLetter);
    },

    /** What has happened to the letter, newest first, from below the id `before` on. */
    async history(id: number, before: number | undefined, limit: number) {
      const text = `SELECT id, at, event, actor, details FROM letters.history
                    WHERE letter_id = $1 AND ($2::bigint IS NULL OR id < $2) ORDER BY id DESC LIMIT $3`;
      const { rows } = await query<HistoryRow>('list_letter_history', text, [id, before ?? null, limit]);
      return rows.map((row) => ({ ...row, id: Number(row.id), at: row.at.toISOString() }));
    },

    /** Skips the webform, or changes why it is skipped; null: it is not skipped any more. `changed` has to follow. */
    async setSkip(id: number, webformId: number, skip: { reason: string | null } | null): Promise<void> {
      const text = `UPDATE letters.webform
                    SET skipped_at = CASE WHEN $3 THEN coalesce(skipped_at, clock_timestamp()) END, reason = $4
                    WHERE letter_id = $1 AND webform_id = $2`;
      await query('skip_webform', text, [id, webformId, skip !== null, skip?.reason ?? null]);
    },

    /** Writes a change down: the letter's title and state as they are now, its next version, and what `actor` did. */
    async changed(
      { id, title, state }: Pick<Letter, 'id' | 'title' | 'state'>,
      actor: string,
      happenings: readonly Happening[],
    ): Promise<Letter> {
      // Not now(): who waited for the letter began before the change that they waited for.
      const text = `WITH changed AS (
                      UPDATE letters.letter
                      SET title = $2, state = $3, version = version + 1, updated_at = clock_timestamp()
                      WHERE id = $1 RETURNING updated_at)
                    INSERT INTO letters.history (letter_id, at, actor, event, details)
                    SELECT $1, updated_at, $4, event, details
                    FROM changed, json_to_recordset($5) AS happened (event text, details json)`;
      await query('change_letter', text, [id, title, state, actor, JSON.stringify(happenings)]);
      return (await find(id, 'anybody'))!;
    },

    /** Makes a letter and returns its id; with an `id` of its own only if that is free, else undefined. */
    async create(letter: NewLetter, actor: string, id?: number): Promise<number | undefined> {
      const { userId, title, state, webforms } = letter;
      const text = `WITH made AS (
                      INSERT INTO letters.letter (id, user_id, title, state) OVERRIDING SYSTEM VALUE
                      VALUES (coalesce($1, nextval(pg_get_serial_sequence('letters.letter', 'id'))), $2, $3, $4)
                      ON CONFLICT (id) DO NOTHING RETURNING id, created_at),
                    forms AS (
                      INSERT INTO letters.webform (letter_id, webform_id, required)
                      SELECT id, webform_id, required
                      FROM made, json_to_recordset($5) AS form (webform_id bigint, required boolean)),
                    noted AS (
                      INSERT INTO letters.history (letter_id, at, actor, event, details)
                      SELECT id, created_at, $6, 'created', $7 FROM made)
                    SELECT id FROM made`;
      const details = { title, state, webforms };
      const values = [
        id ?? null,
        userId,
        title,
        state,
        JSON.stringify(webforms),
        actor,
        JSON.stringify(details),
      ];
      const { rows } = await query<{ id: string }>('create_letter', text, values);
      return rows[0] && Number(rows[0].id);
    },
  };
}
